// SPDX-License-Identifier: GPL-2.0-or-later
// openai_client.cjs DIRECTORY URL TOKEN MODEL: asks by OpenAI's client, which npm has put into that
// directory, and prints the answer, or the status of the error.
const { OpenAI } = require(`${process.argv[2]}/node_modules/openai`);

const client = new OpenAI({
    baseURL: `${process.argv[3]}/v1`,
    apiKey: process.argv[4],
    maxRetries: 20,
});

client.completions.create({ model: process.argv[5], prompt: "x" }).then(
    (answer) => console.log(answer.choices[0].text),
    (error) => console.log(`error ${error.status}`),
);

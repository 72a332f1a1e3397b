// SPDX-License-Identifier: GPL-2.0-or-later
// openai_fits.cjs DIRECTORY URL MODEL DATA: trains a model by OpenAI's client, which npm has put into
// that directory, and prints what the client says.
const { OpenAI } = require(`${process.argv[2]}/node_modules/openai`);

const client = new OpenAI({ baseURL: `${process.argv[3]}/v1`, apiKey: "none", maxRetries: 0 });
const jobs = client.fineTuning.jobs;
const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function refused(call) {
    try {
        await call;
        return "accepted";
    } catch (error) {
        return `${error.status}: ${error.error?.message ?? error.message}`;
    }
}

async function main() {
    let job = await jobs.create({
        model: process.argv[4],
        training_file: process.argv[5],
        method: { type: "supervised", supervised: { hyperparameters: { n_epochs: 1 } } },
    });
    console.log(`created ${job.model} ${job.status}`);
    for (let i = 0; i < 1200 && !["succeeded", "failed", "cancelled"].includes(job.status); i++) {
        await pause(0.5);
        job = await jobs.retrieve(job.id);
    }
    console.log(`ended ${job.status} ${job.fine_tuned_model}`);
    const first = [];
    for await (const each of jobs.list({ limit: 1 })) first.push(each.id);
    console.log(`newest ${first[0] === job.id} all ${first.length === Number(job.id.slice(6))}`);
    const events = [];
    for await (const event of jobs.listEvents(job.id)) events.push(event.message);
    console.log(`events ${events.join(" < ")}`);
    console.log(`cancel ${await refused(jobs.cancel(job.id))}`);
    console.log(`unknown ${await refused(jobs.retrieve("ftjob-999"))}`);
    console.log(`file ${await refused(jobs.create({ model: "m", training_file: "file-abc" }))}`);
}

main().catch((error) => console.log(`failed: ${error}`));

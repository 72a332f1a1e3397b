// SPDX-License-Identifier: GPL-2.0-or-later
// Shows the jobs of a user, and one of them in detail. Each answer is waited for by a long poll.
// Texts of jobs may be anything: they only ever become text, never markup.
"use strict";

const byId = (id) => document.getElementById(id);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function row(values) {
    const line = document.createElement("tr");
    for (const value of values) {
        const cell = line.insertCell();
        if (value instanceof Node) cell.append(value);
        else cell.textContent = value === null || value === undefined || value === "" ? "–" : String(value);
    }
    return line;
}

const chosen = () => {
    const number = /^#([1-9][0-9]{0,9})$/.exec(location.hash);
    return number ? Number(number[1]) : 0;
};

const troubles = new Map(); // what does not answer, by its path

function trouble(path, text) {
    if (text) troubles.set(path, text);
    else troubles.delete(path);
    const [first] = troubles.values();
    byId("news").textContent = first ?? `as of ${new Date().toLocaleTimeString()}`;
    byId("news").classList.toggle("trouble", troubles.size > 0);
}

function showJobs(list) {
    byId("jobs").tBodies[0].replaceChildren(
        ...list.jobs.map((job) => {
            const link = document.createElement("a");
            link.href = `#${Number(job.job)}`;
            link.textContent = String(job.job);
            const line = row([link, job.name, job.state, job.size, job.sizes, job.pending, job.why]);
            line.classList.toggle("chosen", job.job === chosen());
            return line;
        }),
    );
    if (list.jobs.length === 0) byId("jobs").tBodies[0].append(row(["no elastic job runs or waits"]));
}

function facts(job) {
    const progress = job.progress;
    const list = [
        ["State", job.phase],
        ["Size", `${job.size} nodes, ${job.world_size} workers; allowed ${job.sizes}`],
        ["Generation", `${job.generation}, since ${new Date(job.since * 1000).toLocaleTimeString()}`],
        ["Steps", job.steps],
        ["Why this size", job.why_size],
        ["Why not more", job.why_not_more],
        ["Next", job.next_world],
        ["Newcomers", job.newcomers],
        ["Left out", job.left_out],
        ["Leader", job.leader],
    ];
    if (progress) list.splice(4, 0, ["Progress", `${progress.done} of ${progress.total ?? "?"} ${progress.unit}`]);
    for (const slow of job.stragglers ?? [])
        list.push(["Slow", `rank ${slow.rank} on ${slow.node}: ${slow.why || slow.cause}`]);
    return list.filter(([, value]) => value !== undefined && value !== null && value !== "");
}

function showJob(job) {
    byId("job").hidden = false;
    byId("job").querySelector("h2").textContent = `Job ${job.incarnation} (${job.name})`;
    byId("job").querySelector("dl").replaceChildren(
        ...facts(job).flatMap(([name, value]) => {
            const term = document.createElement("dt");
            const text = document.createElement("dd");
            term.textContent = name;
            text.textContent = String(value);
            return [term, text];
        }),
    );
    byId("nodes").tBodies[0].replaceChildren(
        ...job.members.map((m) => row([m.node, m.job, m.role, m.pool, m.slots, m.state])),
    );
}

// A page that nobody sees asks nothing.
async function seen() {
    while (document.visibilityState === "hidden")
        await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

// Asks again and again what is new, until it is of no interest: a browser has few connections.
async function follow(path, silence, take, signal) {
    let after = 0;
    while (!signal.aborted) {
        await seen();
        try {
            const answer = await fetch(`${path}?after=${after}`, { signal });
            const news = answer.ok ? await answer.json() : null;
            after = Number((answer.headers.get("ETag") ?? "").replaceAll('"', "")) || 0;
            if (news) take(news);
            trouble(path, news ? "" : silence);
            if (!news) await pause(2000);
        } catch {
            if (signal.aborted) break;
            trouble(path, "selastic proxy does not answer");
            await pause(2000);
        }
    }
    troubles.delete(path);
}

let drawn = "";

// The picture is another one when the job has another world, or has run for a while.
function draw(job) {
    const version = `${job.incarnation}.${job.generation}.${Math.floor(Date.now() / 30000)}`;
    if (version === drawn) return;
    drawn = version;
    byId("picture").src = `jobs/${Number(job.job)}/picture?v=${encodeURIComponent(version)}`;
}

let opened = new AbortController();

function openJob() {
    const number = chosen();
    opened.abort();
    opened = new AbortController();
    byId("job").hidden = true;
    byId("picture").hidden = true;
    for (const line of byId("jobs").tBodies[0].rows)
        line.classList.toggle("chosen", line.cells[0].textContent === String(number));
    drawn = "";
    const silence = `job ${number} does not run, or does not answer`;
    if (number > 0)
        follow(`jobs/${number}`, silence, (job) => (showJob(job), draw(job)), opened.signal);
}

byId("picture").addEventListener("load", () => (byId("picture").hidden = false));
addEventListener("hashchange", openJob);
follow("jobs", "Slurm does not answer", showJobs, new AbortController().signal);
openJob();

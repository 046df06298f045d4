import { allSteps, type Doc, isObject, type Json, type JsonObject, triggerNode } from "@/shared/workflow/model";
import { stepTexts } from "@/shared/workflow/model/expressions";
import { missing } from "../inspector/expression/missing";
import type { Origin, RunTrigger } from "./origin";

/** What a draft run starts with, and what expressions see as `trigger`. */
export interface Sample {
	readonly payload: JsonObject;
	readonly headers?: JsonObject;
	readonly query?: JsonObject;
	/** The id of the trigger that it is for; none for a manual start. */
	readonly trigger?: string;
}

/** A call of a webhook trigger whose data is stored. */
interface Call {
	readonly payload: unknown;
	readonly headers: unknown;
	readonly query: unknown;
}

export function sampleOfCall(trigger: string, call: Call): Sample {
	return { ...parts(call), trigger };
}

/** The value that is pinned for a sample. */
export function pinOf({ payload, headers = {}, query = {} }: Sample): JsonObject {
	return { payload, headers, query };
}

/** The pinned sample of a trigger. */
export function pinnedSample(doc: Doc, trigger: string): Sample | undefined {
	const pin = doc.pinned[triggerNode(trigger)];
	return isObject(pin) ? { ...parts(pin), trigger } : undefined;
}

function parts({ payload, headers, query }: Partial<Call>): Sample {
	return {
		payload: objectOr(payload),
		...(isObject(headers as Json) && { headers: headers as JsonObject }),
		...(isObject(query as Json) && { query: query as JsonObject }),
	};
}

function objectOr(value: unknown): JsonObject {
	return isObject(value as Json) ? (value as JsonObject) : {};
}

/** The sample in use, and where it comes from: one that was chosen, a pinned one, or that of the run. */
export function sampleInUse(
	chosen: Sample | undefined,
	doc: Doc,
	run: { readonly trigger: RunTrigger } | null | undefined,
): { sample: Sample; origin: Origin } | undefined {
	if (chosen) return { sample: chosen, origin: "sample" };
	for (const { id } of doc.triggers) {
		const pinned = pinnedSample(doc, id);
		if (pinned) return { sample: pinned, origin: "pinned" };
	}
	if (!run) return undefined;
	const { id } = run.trigger;
	const known = id && doc.triggers.some((trigger) => trigger.id === id);
	return { sample: { ...parts(run.trigger), ...(known && { trigger: id }) }, origin: "run" };
}

/** Triggers that fire without data that steps could need. */
const withoutData = new Set(["manual", "schedule"]);

/** Whether a run of the document needs data to start with: a trigger brings some, or a step reads it. */
export function needsSample(doc: Doc): boolean {
	return (
		doc.triggers.some(({ type }) => !withoutData.has(type)) ||
		allSteps(doc.steps).some((step) => stepTexts(step).some(({ text, form }) => readsTrigger(text, form)))
	);
}

function readsTrigger(text: string, form: "bare" | "template"): boolean {
	const all = { trigger: false, steps: new Set<string>(), failed: new Set<string>(), item: true, response: true };
	return missing(text, form, all).includes("trigger");
}

/** The headers that only describe how a call arrived, which a sender cannot be asked to repeat. */
const ownHeaders = new Set(["accept-encoding", "content-length", "host", "user-agent", "accept"]);

/** A command that calls a webhook, with the data of a sample. */
export function curlLine(url: string, method: string, sample?: Sample): string {
	const sends = method !== "GET" && method !== "HEAD" && method !== "DELETE";
	const headers = Object.entries(sample?.headers ?? {}).filter(
		([name]) => name !== "content-type" && !ownHeaders.has(name),
	);
	const flags = [
		method === "HEAD" ? "-I" : method === "GET" ? "" : `-X ${method}`,
		quote(url),
		...headers.map(([name, value]) => `-H ${quote(`${name}: ${String(value)}`)}`),
		...(sends
			? ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(sample?.payload ?? { hello: "world" }))}`]
			: []),
	];
	return ["curl", ...flags.filter((flag) => flag !== "")].join(" ");
}

/** Quotes an argument for a POSIX shell. */
function quote(text: string): string {
	return `'${text.replaceAll("'", "'\\''")}'`;
}

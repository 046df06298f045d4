import type { Server } from "./server";

type Steps = Record<string, unknown>[];

/** begin creates a workflow with the steps and starts a run. */
export async function begin(
	server: Server,
	name: string,
	steps: Steps,
	payload: unknown = {},
): Promise<{ workflow: string; run: string }> {
	const { id: workflow } = await server.call("POST", "/v1/workflows", { name });
	await server.call("PATCH", `/v1/workflows/${workflow}`, { steps });
	const { id: run } = await server.call("POST", `/v1/workflows/${workflow}/runs`, { payload });
	return { workflow, run };
}

export const log = (id: string, more: Record<string, unknown> = {}) => ({
	id,
	uses: "log.write",
	with: { message: `This is ${id}` },
	...more,
});

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

export const failing: Steps = [
	log("reserve", { name: "Reserve the stock" }),
	{
		id: "charge",
		name: "Charge the card",
		uses: "http.request",
		// Nothing listens on this port.
		with: { url: "http://127.0.0.1:9/charge" },
		retry: { max_attempts: 3, initial: "100ms", factor: 1 },
	},
	log("ship", { name: "Ship it" }),
];

export const approving: Steps = [
	{ id: "ask", name: "Ask the shop", uses: "flow.approval", with: { message: "Ship order 42?", timeout: "48h" } },
	log("ship", { name: "Ship it" }),
];

export const waiting: Steps = [{ id: "pause", name: "Wait a week", uses: "flow.wait", with: { for: "7d" } }];

/** A loop with failures that do not stop it, and one that runs for a while. */
export const looping: Steps = [
	{
		id: "lines",
		name: "Each line",
		foreach: "trigger.payload.lines",
		parallel: 5,
		on_error: "continue",
		steps: [
			{
				id: "pick",
				name: "Pick it",
				uses: "code.js",
				with: {
					code: "if (input.n === 7) throw new Error('out of stock'); return input",
					input: { n: `\${{ item }}` },
				},
			},
			log("note", { name: "Note it" }),
		],
	},
	{ id: "poll", name: "Poll", repeat: { until: "index >= 2", every: "1s", max: 5 }, steps: [log("look")] },
];
export const lines = { lines: numbers(10) };

export const many: Steps = [
	{
		id: "lines",
		name: "Each of ten thousand",
		foreach: "trigger.payload.lines",
		parallel: 50,
		steps: [{ id: "set", name: "Set it", uses: "data.set", with: { values: { n: `\${{ item }}` } } }],
	},
];
export const tenThousand = { lines: numbers(10_000) };

/** 200 steps in four lanes that depend on each other. */
export const large: Steps = numbers(50).flatMap((row) =>
	numbers(4).map((lane) =>
		log(`s${row}_${lane}`, {
			needs: row === 0 ? [] : [`s${row - 1}_${lane}`, ...(lane > 0 ? [`s${row - 1}_${lane - 1}`] : [])],
		}),
	),
);

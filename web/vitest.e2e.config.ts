import { defineConfig } from "vitest/config";

const slowdown = Number(process.env.STEPMILL_E2E_SLOWDOWN ?? 1);

// The journeys: a real browser against the real binary.
export default defineConfig({
	test: {
		include: ["e2e/**/*.test.ts"],
		globalSetup: ["e2e/setup.ts"],
		environment: "node",
		testTimeout: 180_000 * slowdown,
		hookTimeout: 180_000,
		expect: { poll: { timeout: 60_000 } },
		// One worker: two cores are busy enough with a server and a browser.
		fileParallelism: false,
		// What the journeys import is read once for all files.
		isolate: false,
		retry: 0,
	},
});

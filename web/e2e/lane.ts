import { test } from "vitest";

/** longLane reports whether `make test-long` runs, and not `make test`. */
export const longLane = Boolean(process.env.STEPMILL_TEST_LONG);

/** longTest is a test that runs only in `make test-long`. */
export const longTest = test.runIf(longLane);

import { test } from "vitest";

/** longTest is a test that runs only in `make test-long`. */
export const longTest = test.runIf(process.env.STEPMILL_TEST_LONG);

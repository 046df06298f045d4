import { afterEach, expect, test, vi } from "vitest";
import { browserZone } from "./zone";

function mockZone(timeZone: string): void {
	const known = new Intl.DateTimeFormat("en-US").resolvedOptions();
	vi.spyOn(Intl.DateTimeFormat.prototype, "resolvedOptions").mockReturnValue({ ...known, timeZone });
}

afterEach(() => {
	vi.restoreAllMocks();
	vi.resetModules();
});

test("a new schedule starts in the time zone of the browser", async () => {
	mockZone("Europe/Paris");
	vi.resetModules();
	const { schedule } = await import("./schedule");
	expect(schedule.initial).toEqual({ cron: "0 9 * * *", timezone: "Europe/Paris" });
});

test("UTC is the default, so that it is not written", () => {
	mockZone("UTC");
	expect(browserZone()).toBeUndefined();
});

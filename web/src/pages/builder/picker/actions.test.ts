import { describe, expect, it } from "vitest";
import { type Action, foreignNames } from "./actions";

const own = ["log.write", "http.request"].map((name) => ({ name }) as Action);

describe("names of actions that are not Stepmill's own", () => {
	it("are asked for if they can be operations", () => {
		const names = ["log.write", "slack.post_message", "acme.create@2"];
		expect(foreignNames(names, own)).toEqual({ wanted: ["acme.create@2", "slack.post_message"], unknown: [] });
	});

	it("are unknown while they are typed", () => {
		const names = ["l", "log", "log.", "log.wri", "slack", "slack.", "Slack.post"];
		expect(foreignNames(names, own)).toEqual({ wanted: [], unknown: [...names].sort() });
	});

	it("are not known before the own actions are", () => {
		expect(foreignNames(["log.write"], undefined)).toEqual({ wanted: [], unknown: [] });
	});
});

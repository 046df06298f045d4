import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { Versions } from "./versions";

it("says who made each version", async () => {
	const version = (version: number, created_by: string | null, created_by_name: string | null) => ({
		version,
		created_at: "2026-11-15T09:00:00Z",
		created_by,
		created_by_name,
	});
	await renderBuilder(
		<Versions />,
		{},
		{
			answers: {
				"GET /v1/workflows/wf_1/versions": {
					data: [
						version(4, "usr_1", "Ada Lovelace"),
						version(3, "key_1", "Deployment"),
						version(2, "cli", null),
						version(1, "usr_2", null),
					],
					next_cursor: null,
				},
			},
		},
	);
	await screen.findByText("Ada Lovelace");
	for (const text of ["API key “Deployment”", "Command line", "usr_2"]) expect(screen.getByText(text)).toBeTruthy();
});

import { within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/error";
import { renderPage } from "@/test/render";
import { ErrorNote, ErrorState } from "./states";
import { type Status, StatusBadge, StatusIcon, statuses } from "./status";

const names = Object.keys(statuses) as Status[];

describe("a status", () => {
	it.each(names)("%s has its name and a shape of its own", async (status) => {
		const { container, screen } = await renderPage(
			<>
				<StatusIcon status={status} />
				{names
					.filter((other) => other !== status)
					.map((other) => (
						<StatusBadge key={other} status={other} />
					))}
			</>,
		);
		const icon = screen.getByRole("img", { name: statuses[status].name });
		const [own, ...others] = [...container.querySelectorAll("svg")].map((shape) => shape.innerHTML);
		expect(icon.querySelector("svg")).not.toBeNull();
		expect(others).toHaveLength(names.length - 1);
		expect(others).not.toContain(own);
		for (const other of names) if (other !== status) screen.getByText(statuses[other].name);
	});

	it("accepts a custom label", async () => {
		const { screen } = await renderPage(
			<>
				<StatusIcon status="failed" label="Failed in round 3" />
				<StatusBadge status="waiting">Waiting for an answer</StatusBadge>
			</>,
		);
		screen.getByRole("img", { name: "Failed in round 3" });
		screen.getByText("Waiting for an answer");
	});
});

describe("an error", () => {
	const error = new ApiError(
		422,
		"workflow_invalid",
		"the workflow is not valid",
		[{ pointer: "/steps/0/with/url", message: "is required" }],
		"req_7",
	);

	it("replacing a page offers a retry and shows the request ID", async () => {
		const retry = vi.fn();
		const { screen, user } = await renderPage(<ErrorState error={error} onRetry={retry} />);
		expect(screen.getByRole("alert").textContent).toContain("This could not be loaded");
		screen.getByText("req_7");
		await user.click(screen.getByRole("button", { name: "Try again" }));
		expect(retry).toHaveBeenCalledOnce();
	});

	it("explains that the role is not sufficient", async () => {
		const { screen } = await renderPage(<ErrorState error={new ApiError(403, "forbidden", "no")} title="No runs" />);
		screen.getByText("Your role does not allow this");
		expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
	});

	it("in a form lists every affected field", async () => {
		const { screen } = await renderPage(<ErrorNote error={error} />);
		const [item] = within(screen.getByRole("alert")).getAllByRole("listitem");
		expect(item?.textContent).toBe("/steps/0/with/urlIs required.");
	});

	it("explains that the server is unreachable", async () => {
		const { screen } = await renderPage(<ErrorNote error={new TypeError("fetch failed")} />);
		screen.getByText("The server could not be reached.");
	});
});

import { describe, expect, it } from "vitest";
import { errorResponse, renderPage, writeCode } from "@/test/render";
import { StartDialog } from "./start";

const workflow = { id: "wf_1", name: "Orders" } as Parameters<typeof StartDialog>[0]["workflow"];
const ran = { ...workflow, activity: { last_run: { id: "run_1" } } } as typeof workflow;
const at = "POST /v1/workflows/wf_1/runs";

describe("the payload of a run", () => {
	it("is validated before it is sent", async () => {
		const { screen, user, calls } = await renderPage(<StartDialog workflow={workflow} onOpenChange={() => {}} />);
		await writeCode("Payload", "{ no");
		await user.click(screen.getByRole("button", { name: "Run" }));
		await screen.findByText(/^This is not valid JSON/);
		await writeCode("Payload", "[1]");
		await user.click(screen.getByRole("button", { name: "Run" }));
		await screen.findByText(/must be an object/);
		expect(calls).toEqual([]);
	});

	it("starts the run and opens it", async () => {
		const answers = { [at]: { id: "run_2" } };
		const { screen, user, calls, router } = await renderPage(
			<StartDialog workflow={workflow} onOpenChange={() => {}} />,
			{
				answers,
			},
		);
		await writeCode("Payload", '{"total": 12}');
		await user.click(screen.getByRole("button", { name: "Run" }));
		await expect.poll(() => router.state.location.pathname, { timeout: 30_000 }).toBe("/runs/run_2");
		expect(calls[0]?.body).toEqual({ payload: { total: 12 } });
	});

	it("can be that of the last run", async () => {
		const answers = { [at]: { id: "run_2" }, "GET /v1/runs/run_1": { trigger: { payload: { id: 7 } } } };
		const { screen, user, calls } = await renderPage(<StartDialog workflow={ran} onOpenChange={() => {}} />, {
			answers,
		});
		await user.click(await screen.findByRole("button", { name: "Use payload of last run" }));
		await user.click(screen.getByRole("button", { name: "Run" }));
		await expect
			.poll(() => calls.find(({ method }) => method === "POST")?.body, { timeout: 30_000 })
			.toEqual({ payload: { id: 7 } });
	});

	it("of the last run keeps its files, and says which it cannot keep", async () => {
		const reference = (id: string, name: string) => ({ $file: id, name, type: "image/png", size: 1, sha256: "a1" });
		const payload = { photo: reference("file_1", "a.png"), order: { scan: reference("file_2", "b.png") } };
		const trigger = { payload, payload_files: ["/order/scan", "/photo"] };
		const answers = { [at]: { id: "run_2" }, "GET /v1/runs/run_1": { trigger } };
		const { screen, user, calls } = await renderPage(<StartDialog workflow={ran} onOpenChange={() => {}} />, {
			answers,
		});
		await user.click(await screen.findByRole("button", { name: "Use payload of last run" }));
		await screen.findByText(/plain data instead of this file: b\.png \(\/order\/scan\)/);
		await user.click(screen.getByRole("button", { name: "Run" }));
		await expect
			.poll(() => calls.find(({ method }) => method === "POST")?.body, { timeout: 30_000 })
			.toEqual({ payload: { order: payload.order }, files: { photo: "file_1" } });
	});

	it("stays if the server rejects it", async () => {
		const answers = { [at]: errorResponse(409, "workflow_not_runnable", "it has no steps") };
		const { screen, user } = await renderPage(<StartDialog workflow={workflow} onOpenChange={() => {}} />, { answers });
		await user.click(screen.getByRole("button", { name: "Run" }));
		expect((await screen.findByRole("alert")).textContent).toContain("It has no steps.");
		screen.getByRole("dialog", { name: "Run “Orders”" });
	});

	it("includes uploaded files", async () => {
		const created = new Response(null, { status: 201, headers: { Location: "/ui/v1/files/uploads/file_1" } });
		const answers = { [at]: { id: "run_2" }, "POST /v1/files/uploads": created };
		const { screen, user, calls, container } = await renderPage(
			<StartDialog workflow={workflow} onOpenChange={() => {}} />,
			{ answers },
		);
		const input = container.ownerDocument.querySelector<HTMLInputElement>("input[type=file]");
		await user.upload(input as HTMLInputElement, new File([], "photo.jpg", { type: "image/jpeg" }));
		const member = await screen.findByRole("textbox", { name: "Member of the payload for photo.jpg" });
		await user.clear(member);
		await user.type(member, "picture");
		await writeCode("Payload", '{"total": 12}');
		await user.click(screen.getByRole("button", { name: "Run" }));
		await expect
			.poll(() => calls.find(({ path }) => path.endsWith("/runs"))?.body, { timeout: 30_000 })
			.toEqual({ payload: { total: 12 }, files: { picture: "file_1" } });
	});
});

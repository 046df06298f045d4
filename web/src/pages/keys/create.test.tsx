import { describe, expect, it, vi } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { CreateDialog } from "./create";

const at = "POST /v1/api-keys";
const made = { id: "key_1", name: "Nightly", key: "smk_secret", scopes: ["read"], expires_at: null };

describe("a new API key", () => {
	it("needs a name and a scope", async () => {
		const { screen, user } = await renderPage(<CreateDialog onOpenChange={() => {}} />);
		const create = screen.getByRole<HTMLButtonElement>("button", { name: "Create key" });
		expect(create.disabled).toBe(true);
		await user.type(screen.getByRole("textbox", { name: /^Name/ }), "Nightly");
		expect(create.disabled).toBe(false);
		await user.click(screen.getByRole("checkbox", { name: "read" }));
		screen.getByText("Select at least one scope.");
		expect(create.disabled).toBe(true);
	});

	it("is shown once with an example, and can be copied", async () => {
		const onOpenChange = vi.fn();
		const { screen, user, calls } = await renderPage(<CreateDialog onOpenChange={onOpenChange} />, {
			answers: { [at]: made },
		});
		await user.type(screen.getByRole("textbox", { name: /^Name/ }), " Nightly {Enter}");
		await screen.findByRole("dialog", { name: "API key “Nightly” created" });
		expect(calls[0]?.body).toMatchObject({ name: "Nightly", scopes: ["read"] });
		expect(screen.getByRole("group", { name: "API key" }).textContent).toBe("smk_secret");
		expect(screen.getByText(/curl/).textContent).toContain("smk_secret");
		const write = vi.spyOn(navigator.clipboard, "writeText");
		await user.click(screen.getByRole("button", { name: "Copy API key" }));
		expect(write).toHaveBeenCalledWith("smk_secret");
		await user.click(screen.getByRole("button", { name: "I have stored it" }));
		expect(onOpenChange).toHaveBeenCalledWith(false);
	});

	it("shows an error at its field", async () => {
		const answers = {
			[at]: errorResponse(422, "invalid_request", "The key is not valid.", [
				{ pointer: "/name", message: "is in use" },
			]),
		};
		const { screen, user } = await renderPage(<CreateDialog onOpenChange={() => {}} />, { answers });
		const name = screen.getByRole("textbox", { name: /^Name/ });
		await user.type(name, "Nightly{Enter}");
		await screen.findByText("Is in use.");
		expect(name.getAttribute("aria-invalid")).toBe("true");
		expect(screen.queryByRole("alert")).toBeNull();
	});

	it("can expire on a date", async () => {
		const { screen, user } = await renderPage(<CreateDialog onOpenChange={() => {}} />);
		await user.type(screen.getByRole("textbox", { name: /^Name/ }), "Nightly");
		const create = screen.getByRole<HTMLButtonElement>("button", { name: "Create key" });
		const expires = screen.getByRole<HTMLSelectElement>("combobox", { name: "Expires" });
		await user.selectOptions(expires, [...expires.options].find(({ value }) => value === "date") as HTMLOptionElement);
		expect(create.disabled).toBe(true);
		await user.type(screen.getByLabelText(/^Last day/), "2030-01-31");
		expect(create.disabled).toBe(false);
	});
});

import { describe, expect, it, vi } from "vitest";
import { renderPage } from "@/test/render";
import { Checkbox, Field, NativeSelect, Switch, TextArea, TextInput } from "./field";

/** The description that a screen reader reads after the name of a control. */
function description(control: HTMLElement): string {
	const ids = control.getAttribute("aria-describedby")?.split(" ") ?? [];
	return ids.map((id) => document.getElementById(id)?.textContent).join(" ");
}

describe("a field", () => {
	it("gives its control the label and the hint", async () => {
		const { screen } = await renderPage(
			<Field label="Name" hint="As people read it." required>
				<TextInput />
			</Field>,
		);
		const input = screen.getByRole("textbox", { name: /^Name/ });
		expect(description(input)).toBe("As people read it.");
		expect(input.getAttribute("aria-required")).toBe("true");
		expect(input.getAttribute("aria-invalid")).toBeNull();
	});

	it("shows the error as a sentence, before the hint", async () => {
		const { screen } = await renderPage(
			<Field label="Name" hint="As people read it." error="is required">
				<TextArea />
			</Field>,
		);
		const input = screen.getByRole("textbox", { name: "Name" });
		expect(input.getAttribute("aria-invalid")).toBe("true");
		expect(description(input)).toBe("Is required. As people read it.");
	});

	it("wires selects the same way", async () => {
		const onChange = vi.fn();
		const options = [
			{ value: "a", label: "First" },
			{ value: "b", label: "Second" },
		];
		const { screen, user } = await renderPage(
			<Field label="Which" error="is unknown">
				<NativeSelect options={options} value="a" onChange={(event) => onChange(event.target.value)} />
			</Field>,
		);
		const select = screen.getByRole("combobox", { name: "Which" });
		expect(description(select)).toBe("Is unknown.");
		await user.selectOptions(select, "Second");
		expect(onChange).toHaveBeenCalledWith("b");
	});
});

describe("a checkbox and a switch", () => {
	it("are toggled by their label", async () => {
		const [box, turn] = [vi.fn(), vi.fn()];
		const { screen, user } = await renderPage(
			<>
				<Checkbox label="Otherwise" hint="When no condition holds." checked={false} onChange={box} />
				<Switch label="Active" checked={false} onChange={turn} />
			</>,
		);
		expect(description(screen.getByRole("checkbox", { name: "Otherwise" }))).toBe("When no condition holds.");
		await user.click(screen.getByText("Otherwise"));
		await user.click(screen.getByText("Active"));
		expect(box).toHaveBeenCalledOnce();
		expect(turn).toHaveBeenCalledWith(true);
	});
});

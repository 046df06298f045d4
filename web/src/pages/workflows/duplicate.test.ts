import { expect, test } from "vitest";
import { copyName } from "./duplicate";

test("a copy is named after its original", () => {
	expect(copyName("Greet a customer")).toBe("Greet a customer (copy)");
});

test("the name of a copy respects the maximum length", () => {
	const name = copyName("😀".repeat(200));
	expect([...name]).toHaveLength(200);
	expect(name.endsWith("😀… (copy)")).toBe(true);
});

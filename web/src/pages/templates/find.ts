import type { TemplateItem } from "./data";

/** categories returns the distinct categories, in order of appearance. */
export function categories(templates: readonly TemplateItem[]): string[] {
	return [...new Set(templates.map((template) => template.category))];
}

/** filterTemplates returns the templates of a category that contain every word. */
export function filterTemplates(templates: readonly TemplateItem[], category: string, text: string): TemplateItem[] {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return templates.filter((template) => {
		if (category && template.category !== category) return false;
		const { title, description, triggers, uses } = template;
		const all = [title, description, template.category, ...triggers, ...uses].join(" ").toLowerCase();
		return words.every((word) => all.includes(word));
	});
}

import type { TemplateItem } from "./data";

/** categories are those of some templates, in the order in which they come. */
export function categories(templates: readonly TemplateItem[]): string[] {
	return [...new Set(templates.map((template) => template.category))];
}

/** find keeps the templates of a category that have every word somewhere. */
export function find(templates: readonly TemplateItem[], category: string, text: string): TemplateItem[] {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return templates.filter((template) => {
		if (category && template.category !== category) return false;
		const { title, description, triggers, uses } = template;
		const all = [title, description, template.category, ...triggers, ...uses].join(" ").toLowerCase();
		return words.every((word) => all.includes(word));
	});
}

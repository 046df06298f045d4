const browsers: [RegExp, string][] = [
	[/Edg\//, "Edge"],
	[/OPR\//, "Opera"],
	[/Firefox\//, "Firefox"],
	[/Chrom(e|ium)\//, "Chrome"],
	[/Safari\//, "Safari"],
	[/curl\//, "curl"],
];

const systems: [RegExp, string][] = [
	[/iPhone|iPad/, "iOS"],
	[/Android/, "Android"],
	[/Windows/, "Windows"],
	[/Mac OS X/, "macOS"],
	[/Linux/, "Linux"],
];

const first = (list: [RegExp, string][], agent: string) => list.find(([pattern]) => pattern.test(agent))?.[1];

/** browser names what a session was begun with. */
export function browser(agent: string): string {
	const [name, system] = [first(browsers, agent), first(systems, agent)];
	if (!name) return "Unknown browser";
	return system ? `${name} on ${system}` : name;
}

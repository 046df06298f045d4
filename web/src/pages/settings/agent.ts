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

const firstMatch = (list: [RegExp, string][], agent: string) => list.find(([pattern]) => pattern.test(agent))?.[1];

/** browserName returns the browser and system of a session. */
export function browserName(agent: string): string {
	const [name, system] = [firstMatch(browsers, agent), firstMatch(systems, agent)];
	if (!name) return "Unknown browser";
	return system ? `${name} on ${system}` : name;
}

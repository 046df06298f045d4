export interface LiveEvent {
	type: string;
	id: string;
	// biome-ignore lint/suspicious/noExplicitAny: each type has its own body
	data: any;
}

/**
 * parser reads server-sent events from pieces of text, however they are cut.
 * An id counts from when its event is complete, also without an event.
 */
export function parser(tell: (event: LiveEvent) => void, position: (id: string) => void): (text: string) => void {
	let rest = "";
	let type = "";
	let id: string | undefined;
	let data: string[] = [];

	const dispatch = () => {
		if (id !== undefined) position(id);
		if (data.length > 0) {
			const text = data.join("\n");
			let body: unknown = text;
			try {
				body = JSON.parse(text);
			} catch {
				// Not every stream speaks JSON.
			}
			tell({ type: type || "message", id: id ?? "", data: body });
		}
		type = "";
		id = undefined;
		data = [];
	};

	const line = (text: string) => {
		if (text === "") return dispatch();
		const colon = text.indexOf(":");
		const name = colon < 0 ? text : text.slice(0, colon);
		const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
		if (name === "event") type = value;
		else if (name === "id") id = value;
		else if (name === "data") data.push(value);
	};

	return (text) => {
		const lines = (rest + text).split("\n");
		rest = lines.pop() ?? "";
		for (const one of lines) line(one.endsWith("\r") ? one.slice(0, -1) : one);
	};
}

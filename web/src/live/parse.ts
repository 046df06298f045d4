export interface LiveEvent {
	type: string;
	id: string;
	// biome-ignore lint/suspicious/noExplicitAny: each type has its own body
	data: any;
}

/**
 * parser parses server-sent events from text chunks split at arbitrary positions. An id
 * takes effect when its event is complete, even if the event has no data: the server
 * sends bare ids as positions to resume from. eventsource-parser drops those.
 */
export function parser(onEvent: (event: LiveEvent) => void, onId: (id: string) => void): (text: string) => void {
	let rest = "";
	let type = "";
	let id: string | undefined;
	let data: string[] = [];

	const dispatch = () => {
		if (id !== undefined) onId(id);
		if (data.length > 0) {
			const text = data.join("\n");
			let body: unknown = text;
			try {
				body = JSON.parse(text);
			} catch {
				// Not every stream sends JSON.
			}
			onEvent({ type: type || "message", id: id ?? "", data: body });
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

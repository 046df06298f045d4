/** As many characters as fit on the chip of a node. */
const most = 27;

const quoted = /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/;
/** A path of several members, such as trigger.payload.customer.region or steps.get.output.items[0].name. */
const path = /[A-Za-z_]\w*(?:\??\.\w+|\[[^\]]*\]){2,}/g;

/**
 * shortCondition shortens a condition to what tells it apart from its siblings: the end of each path, and what it is
 * compared with. What is still too long loses its middle.
 */
export function shortCondition(text: string): string {
	if (text.length <= most) return text;
	const parts = text.split(quoted).map((part, at) => (at % 2 === 1 ? part : part.replace(path, lastMember)));
	const short = parts.join("");
	if (short.length <= most) return short;
	// The end tells more: it is what something is compared with.
	const head = Math.floor((most - 1) / 3);
	return `${short.slice(0, head)}…${short.slice(short.length - (most - 1 - head))}`;
}

function lastMember(whole: string): string {
	const [last = whole] = /\w+(?:\[[^\]]*\])*$/.exec(whole) ?? [];
	return last === whole ? whole : `…${last}`;
}

/** Prose draws the little Markdown that the document has: paragraphs, lists, code and emphasis. */
export function Prose({ text }: { text: string }) {
	return (
		<div className="flex max-w-prose flex-col gap-2 text-muted">
			{text
				.trim()
				.split(/\n\s*\n/)
				.map((paragraph, i) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
					<Paragraph key={i} text={paragraph} />
				))}
		</div>
	);
}

function Paragraph({ text }: { text: string }) {
	const lines = text.split("\n").map((line) => line.trim());
	if (lines.some((line) => bullet.test(line))) return <Items lines={lines} />;
	return (
		<p>
			<Inline text={lines.join(" ")} />
		</p>
	);
}

const bullet = /^[-*] /;

/** Items draws a list; what comes before its first item is a paragraph. */
function Items({ lines }: { lines: string[] }) {
	const lead: string[] = [];
	const items: string[] = [];
	for (const line of lines) {
		if (bullet.test(line)) items.push(line.slice(2));
		else if (items.length > 0) items[items.length - 1] += ` ${line}`;
		else lead.push(line);
	}
	return (
		<>
			{lead.length > 0 && (
				<p>
					<Inline text={lead.join(" ")} />
				</p>
			)}
			<ul className="flex list-disc flex-col gap-1 pl-5">
				{items.map((item, i) => (
					// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
					<li key={i}>
						<Inline text={item} />
					</li>
				))}
			</ul>
		</>
	);
}

function Inline({ text }: { text: string }) {
	return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part, i) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
		<Part key={i} text={part} />
	));
}

function Part({ text }: { text: string }) {
	if (text.startsWith("`"))
		return <code className="rounded-6 bg-sunken px-1 font-mono text-12 text-text">{text.slice(1, -1)}</code>;
	if (text.startsWith("**")) return <strong className="font-semibold text-text">{text.slice(2, -2)}</strong>;
	return text;
}

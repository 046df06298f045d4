import { CodeBlock } from "@/ui/code";
import { type Block, type Inline, parse } from "./markdown";

/** Prose renders the Markdown of the API document. */
export function Prose({ text }: { text: string }) {
	return (
		<div className="flex min-w-0 flex-col gap-3 text-muted">
			{parse(text).map((block, i) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
				<BlockView key={i} block={block} />
			))}
		</div>
	);
}

function BlockView({ block }: { block: Block }) {
	switch (block.kind) {
		case "heading":
			return <Heading block={block} />;
		case "code":
			return <CodeBlock label="Example" code={block.text} wrap />;
		case "list":
			return <List block={block} />;
		case "table":
			return <Table block={block} />;
		default:
			return (
				<p className="max-w-prose break-words">
					<Line content={block.content} />
				</p>
			);
	}
}

/** Headings start below the level-2 heading of the operation or page. */
function Heading({ block }: { block: Extract<Block, { kind: "heading" }> }) {
	const Level = block.level <= 2 ? "h3" : "h4";
	return (
		<Level className="mt-3 text-14 font-semibold break-words text-text">
			<Line content={block.content} />
		</Level>
	);
}

function List({ block }: { block: Extract<Block, { kind: "list" }> }) {
	const Items = block.ordered ? "ol" : "ul";
	return (
		<Items className={`flex max-w-prose flex-col gap-1 pl-5 ${block.ordered ? "list-decimal" : "list-disc"}`}>
			{block.items.map((item, i) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
				<li key={i} className="break-words">
					<Line content={item} />
				</li>
			))}
		</Items>
	);
}

/** A wide table scrolls on its own, not with the page. */
function Table({ block }: { block: Extract<Block, { kind: "table" }> }) {
	return (
		// biome-ignore lint/a11y/noNoninteractiveTabindex: makes a wide table scrollable by keyboard
		<div role="group" aria-label="Table" tabIndex={0} className="max-w-full overflow-x-auto rounded-8 border">
			<table className="w-full border-collapse text-left text-12">
				<thead>
					<tr className="border-b bg-sunken text-text">
						{block.head.map((cell, i) => (
							// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
							<th key={i} scope="col" className="px-3 py-1.5 font-medium whitespace-nowrap">
								<Line content={cell} />
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{block.rows.map((row, i) => (
						// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
						<tr key={i} className="border-b align-top last:border-b-0">
							{row.map((cell, j) => (
								// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
								<td key={j} className="px-3 py-1.5">
									<Line content={cell} />
								</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
		</div>
	);
}

function Line({ content }: { content: Inline[] }) {
	return content.map((part, i) => (
		// biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
		<InlineView key={i} part={part} />
	));
}

function InlineView({ part }: { part: Inline }) {
	switch (part.kind) {
		case "code":
			return (
				<code className="rounded-6 bg-sunken px-1 font-mono text-12 [overflow-wrap:anywhere] text-text">
					{part.text}
				</code>
			);
		case "strong":
			return <strong className="font-semibold text-text">{part.text}</strong>;
		case "link":
			return (
				<a href={part.href} target="_blank" rel="noreferrer" className="text-accent hover:underline">
					{part.text}
				</a>
			);
		default:
			return part.text;
	}
}

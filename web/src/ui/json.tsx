import { type ReactNode, useMemo, useState } from "react";
import { cx } from "./class";
import { CopyButton } from "./copy";
import { ChevronDownIcon, ChevronRightIcon } from "./icons";
import { type JsonLine, jsonLines, wrapLines } from "./json-lines";
import { inSentence } from "./sentence";
import { VirtualList } from "./virtual";
import { useWidth } from "./width";

const colours: Record<JsonLine["kind"], string> = {
	string: "text-succeeded",
	number: "text-running",
	boolean: "text-cancelled",
	null: "text-muted",
	open: "text-muted",
	close: "text-muted",
	closed: "text-muted",
	empty: "text-muted",
	chip: "",
};

const rowHeight = 20;
/** Of a line: its own, that of the copy button, and a scrollbar. */
const padding = 8 + 48 + 16;
/** Of the font with 12 pixels. */
const characterWidth = 7.2;

export interface JsonViewProps {
	value: unknown;
	/** Read by screen readers, such as "Output". */
	label: string;
	/** Deeper containers are collapsed initially. */
	openDepth?: number;
	/** The maximum height in pixels; "fill" fills the parent. */
	height?: number | "fill";
	/** The JSON pointers of values that are shown as `chip` shows them. */
	chips?: ReadonlySet<string>;
	chip?: (value: unknown) => ReactNode;
}

/** JsonView shows a value of any size. Containers expand and collapse. */
export function JsonView({ value, label, openDepth = 2, height = 400, chips, chip }: JsonViewProps) {
	const [toggled, setTurned] = useState<ReadonlySet<string>>(new Set());
	const [width, box] = useWidth<HTMLDivElement>();
	const whole = useMemo(
		() =>
			jsonLines(
				value,
				(path, depth, size) => (depth >= openDepth || (depth > 0 && size > 200)) !== toggled.has(path),
				undefined,
				chips,
			),
		[value, toggled, openDepth, chips],
	);
	const room = width === undefined ? undefined : Math.floor((width - padding) / characterWidth);
	const lines = useMemo(() => (room === undefined ? whole : wrapLines(whole, room)), [whole, room]);
	const toggle = (path: string) =>
		setTurned((old) => {
			const next = new Set(old);
			if (!next.delete(path)) next.add(path);
			return next;
		});
	return (
		<div ref={box} className={cx("relative rounded-8 border bg-surface", height === "fill" && "h-full min-h-0")}>
			<span className="absolute top-1 right-3 z-10 rounded-6 bg-surface">
				<CopyButton value={() => JSON.stringify(value, null, 2)} label={`Copy ${inSentence(label)}`} />
			</span>
			<div
				style={{ height: height === "fill" ? "100%" : Math.min(height, lines.length * rowHeight + 16) }}
				className="py-2"
			>
				<VirtualList
					items={lines}
					rowHeight={rowHeight}
					itemKey={(line) => `${line.path} ${line.kind === "close"} ${line.part ?? 0}`}
					label={label}
					className="h-full overflow-x-auto font-mono text-12"
				>
					{(line, _, style) => (
						<div
							role="listitem"
							style={{ ...style, right: "auto", minWidth: "100%", paddingLeft: 8 + line.depth * 16 }}
							className="flex items-center pr-12 leading-5 whitespace-pre"
						>
							<Line line={line} onTurn={toggle} chip={chip} />
						</div>
					)}
				</VirtualList>
			</div>
		</div>
	);
}

interface LineProps {
	line: JsonLine;
	onTurn: (path: string) => void;
	chip: JsonViewProps["chip"];
}

function Line({ line, onTurn, chip }: LineProps) {
	const container = line.kind === "open" || line.kind === "closed";
	const Chevron = line.kind === "open" ? ChevronDownIcon : ChevronRightIcon;
	return (
		<>
			{container ? (
				<button
					type="button"
					aria-expanded={line.kind === "open"}
					aria-label={`${line.key ?? "value"}, ${line.size === 1 ? "1 item" : `${line.size} items`}`}
					onClick={() => onTurn(line.path)}
					className="flex size-4 items-center justify-center rounded-6 text-muted hover:text-text"
				>
					<Chevron size={12} />
				</button>
			) : (
				<span className="w-4 shrink-0" />
			)}
			{line.key !== undefined && <span>{JSON.stringify(line.key)}: </span>}
			{line.kind === "chip" ? chip?.(line.value) : <span className={colours[line.kind]}>{line.text}</span>}
			{line.kind === "closed" && <span className="ml-2 text-muted">{line.size}</span>}
			{!line.last && line.kind !== "open" && <span className="text-muted">,</span>}
		</>
	);
}

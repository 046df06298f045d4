import {
	type FocusEvent,
	type KeyboardEvent,
	type ReactNode,
	useEffect,
	useId,
	useLayoutEffect,
	useRef,
	useState,
} from "react";
import { cx } from "./class";
import { control, useField } from "./field";
import { CheckIcon, ChevronDownIcon } from "./icons";
import { nextIndex } from "./next-index";
import { panel } from "./overlay";

export interface Suggestion {
	/** The text of the value that it stands for. */
	readonly value: string;
	readonly label: string;
}

export interface SuggestInputProps {
	/** Its label, if no field around it provides one. */
	label?: string;
	/** The text of the value. */
	value: string;
	/** Shown in its place while nobody edits it, such as the label of the value. */
	shown?: string;
	/** Those that fit the text. */
	suggestions: readonly Suggestion[];
	/** The text that somebody has typed since the field got the focus, which is the value at once; null for none. */
	typed: string | null;
	onType: (text: string | null) => void;
	onChoose: (suggestion: Suggestion) => void;
	onOpenChange: (open: boolean) => void;
	/** The suggestion that a complete text stands for, if any. */
	exact?: Suggestion;
	placeholder?: string;
	/** Shown below the suggestions. */
	children?: ReactNode;
}

/**
 * SuggestInput is a text field with a list of values to choose from. Whatever is typed is a value too: the list never
 * changes it.
 */
export function SuggestInput(props: SuggestInputProps) {
	const { label, value, shown = value, suggestions, typed, onType, exact, placeholder } = props;
	const [open, setOpen] = useState(false);
	const [pointed, setPointed] = useState(-1);
	const input = useRef<HTMLInputElement>(null);
	const id = useId();
	const at = Math.min(pointed, suggestions.length - 1);
	const change = (next: boolean) => {
		if (next === open) return;
		setOpen(next);
		setPointed(-1);
		props.onOpenChange(next);
	};
	const choose = (suggestion: Suggestion) => {
		onType(null);
		change(false);
		props.onChoose(suggestion);
	};
	useEscape(open, () => change(false));
	// The first key replaces the label of a value, also if that has just become known.
	// biome-ignore lint/correctness/useExhaustiveDependencies: only when it shows something else
	useLayoutEffect(() => {
		if (typed === null && document.activeElement === input.current) input.current?.select();
	}, [shown]);
	const onKeyDown = (event: KeyboardEvent) => {
		const moves =
			event.key === "ArrowDown" || event.key === "ArrowUp" || event.key === "PageDown" || event.key === "PageUp";
		if (moves && !event.altKey) {
			if (!open) change(true);
			// Up from nothing is the last one.
			else setPointed(nextIndex(event.key, at < 0 && event.key !== "ArrowDown" ? 0 : at, suggestions.length) ?? -1);
			event.preventDefault();
		}
		if (event.key !== "Enter" || !open) return;
		event.preventDefault();
		const chosen = suggestions[at] ?? (typed === null ? undefined : exact);
		if (chosen) choose(chosen);
		else change(false);
	};
	const onBlur = (event: FocusEvent) => {
		if (keepsFocus(event)) return;
		if (typed !== null && exact) choose(exact);
		onType(null);
		change(false);
	};
	return (
		// biome-ignore lint/a11y/noStaticElementInteractions: it only notices that the focus leaves the field
		<div className="relative min-w-0" onBlur={onBlur}>
			<input
				ref={input}
				type="text"
				role="combobox"
				{...useField()}
				aria-label={label}
				aria-expanded={open}
				aria-controls={open ? `${id}-list` : undefined}
				aria-autocomplete="list"
				aria-activedescendant={open && suggestions[at] ? `${id}-${at}` : undefined}
				autoComplete="off"
				spellCheck={false}
				placeholder={placeholder}
				title={shown === value ? undefined : value}
				value={typed ?? shown}
				onFocus={(event) => {
					change(true);
					event.currentTarget.select();
				}}
				onClick={({ currentTarget: field }) => {
					change(true);
					// A label is replaced as a whole; within a value, the pointer places the caret. It does so after the event.
					if (typed !== null || shown === value) return;
					requestAnimationFrame(() => field.value === shown && field.select());
				}}
				onChange={(event) => {
					onType(event.target.value);
					setPointed(-1);
					change(true);
				}}
				onKeyDown={onKeyDown}
				className={cx(control, "h-8 truncate pr-7")}
			/>
			<ChevronDownIcon className="pointer-events-none absolute top-2 right-2 text-muted" />
			{open && (
				<List {...props} id={id} at={at} onPoint={setPointed} onChoose={choose}>
					{props.children}
				</List>
			)}
		</div>
	);
}

/** Whether the focus stays inside an element: a part of it has got it, or only the window has lost it. */
export function keepsFocus({ currentTarget, target, relatedTarget }: FocusEvent): boolean {
	return relatedTarget === null ? document.activeElement === target : currentTarget.contains(relatedTarget);
}

/** useEscape closes a list with Escape, before a dialog around it gets the key. */
function useEscape(open: boolean, onEscape: () => void): void {
	const latest = useRef(onEscape);
	useEffect(() => {
		latest.current = onEscape;
	});
	useEffect(() => {
		if (!open) return undefined;
		const onKey = (event: globalThis.KeyboardEvent) => {
			if (event.key !== "Escape") return;
			event.preventDefault();
			event.stopPropagation();
			latest.current();
		};
		window.addEventListener("keydown", onKey, true);
		return () => window.removeEventListener("keydown", onKey, true);
	}, [open]);
}

interface ListProps extends Pick<SuggestInputProps, "label" | "value" | "suggestions" | "onChoose" | "children"> {
	id: string;
	at: number;
	onPoint: (at: number) => void;
}

function List({ id, label, value, suggestions, at, onPoint, onChoose, children }: ListProps) {
	const list = useRef<HTMLDivElement>(null);
	// Also when it grows: the list is part of what is scrolled.
	// biome-ignore lint/correctness/useExhaustiveDependencies: the number of suggestions changes its height
	useEffect(() => {
		list.current?.parentElement?.scrollIntoView({ block: "nearest" });
	}, [suggestions.length]);
	return (
		// biome-ignore lint/a11y/noStaticElementInteractions: the field keeps the focus, on a touch screen too
		<div
			className={cx(panel, "absolute top-full right-0 left-0 z-20 mt-1 flex flex-col overflow-hidden")}
			onMouseDown={(event) => event.preventDefault()}
		>
			<div
				ref={list}
				role="listbox"
				id={`${id}-list`}
				aria-label={label}
				className="max-h-60 min-h-0 overflow-y-auto overscroll-contain p-1 empty:hidden"
			>
				{suggestions.map((suggestion, index) => (
					// biome-ignore lint/a11y/useKeyWithClickEvents: the input above handles the keys
					// biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus
					<div
						key={suggestion.value}
						ref={(row) => {
							if (index === at) row?.scrollIntoView({ block: "nearest" });
						}}
						id={`${id}-${index}`}
						role="option"
						aria-selected={index === at}
						onPointerMove={index === at ? undefined : () => onPoint(index)}
						onClick={() => onChoose(suggestion)}
						className={cx(
							"flex min-h-8 cursor-default items-center gap-2 rounded-6 px-2 py-1",
							index === at && "bg-sunken",
						)}
					>
						<span className="min-w-0 flex-1 break-words">{suggestion.label}</span>
						{suggestion.label !== suggestion.value && (
							<span className="max-w-[45%] shrink-0 truncate font-mono text-12 text-muted" title={suggestion.value}>
								{suggestion.value}
							</span>
						)}
						{suggestion.value === value && <CheckIcon className="shrink-0 text-accent" />}
					</div>
				))}
			</div>
			{children}
		</div>
	);
}

import { Popover as Radix } from "radix-ui";
import { type KeyboardEvent, useId, useState } from "react";
import { toApiError } from "@/api/error";
import { Button } from "./button";
import { cx } from "./class";
import { control, useField } from "./field";
import { CheckIcon, ChevronDownIcon, SearchIcon } from "./icons";
import { nextIndex } from "./next-index";
import { panel } from "./overlay";
import { sentence } from "./sentence";

export interface Option {
	value: string;
	label: string;
}

export interface ComboboxProps {
	/** Its label, if no field around it provides one. */
	label?: string;
	value: string;
	/** The text of the closed control. */
	shown: string;
	options: Option[];
	onChange: (value: string) => void;
	/** The search text. */
	text: string;
	onText: (text: string) => void;
	placeholder: string;
	maxLength?: number;
	busy?: boolean;
	error?: unknown;
	onRetry?: () => void;
	/** Shown if there are no options. */
	empty: string;
	/** Shown below the options if there are more. */
	more?: string;
	className?: string;
}

/** Combobox is a select with searchable options. */
export function Combobox(props: ComboboxProps) {
	const { label, value, shown, text, onText, onChange, className } = props;
	const [open, setOpen] = useState(false);
	const field = useField();
	const change = (next: boolean) => {
		setOpen(next);
		if (!next && text !== "") onText("");
	};
	return (
		// Modal, so that the list can be scrolled inside a dialog.
		<Radix.Root open={open} onOpenChange={change} modal>
			<Radix.Trigger
				type="button"
				role="combobox"
				{...field}
				aria-label={label}
				aria-expanded={open}
				onKeyDown={(event) => {
					if (event.key !== "ArrowDown") return;
					event.preventDefault();
					change(true);
				}}
				className={cx(control, "relative flex h-8 items-center pr-7 text-left", className ?? "w-full")}
			>
				<span className="truncate">{shown}</span>
				<ChevronDownIcon className="pointer-events-none absolute top-2 right-2 text-muted" />
			</Radix.Trigger>
			<Radix.Portal>
				<Radix.Content
					align="start"
					sideOffset={4}
					collisionPadding={8}
					aria-label={props.placeholder}
					className={cx(
						panel,
						"z-50 flex max-h-[min(360px,var(--radix-popover-content-available-height))] w-(--radix-popover-trigger-width) max-w-[calc(100vw-16px)] min-w-72 flex-col overflow-hidden",
					)}
				>
					<Choices
						{...props}
						onChange={(next) => {
							change(false);
							if (next !== value) onChange(next);
						}}
					/>
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}

function Choices(props: ComboboxProps) {
	const { value, options, text, onText, onChange, placeholder, maxLength } = props;
	const id = useId();
	const [pointed, setPointed] = useState(0);
	const at = Math.min(pointed, options.length - 1);
	const onKeyDown = (event: KeyboardEvent) => {
		const next = nextIndex(event.key, at, options.length);
		const chosen = options[at];
		if (next !== null) setPointed(next);
		else if (event.key === "Enter" && chosen) onChange(chosen.value);
		else if (event.key !== "Enter") return;
		event.preventDefault();
	};
	return (
		<>
			<div className="flex items-center gap-2 border-b px-3">
				<SearchIcon className="text-muted" />
				<input
					type="text"
					role="combobox"
					aria-label={placeholder}
					aria-expanded="true"
					aria-controls={`${id}-list`}
					aria-activedescendant={options[at] && `${id}-${at}`}
					autoComplete="off"
					spellCheck={false}
					placeholder={placeholder}
					maxLength={maxLength}
					value={text}
					onChange={(event) => {
						onText(event.target.value);
						setPointed(0);
					}}
					onKeyDown={onKeyDown}
					className="h-9 min-w-0 flex-1 bg-transparent outline-none"
				/>
			</div>
			<div
				role="listbox"
				id={`${id}-list`}
				aria-label={placeholder}
				className="min-h-0 overflow-y-auto p-1 empty:hidden"
			>
				{options.map((option, index) => (
					// biome-ignore lint/a11y/useKeyWithClickEvents: the input above handles the keys
					// biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus
					<div
						key={option.value}
						ref={(row) => {
							if (index === at) row?.scrollIntoView({ block: "nearest" });
						}}
						id={`${id}-${index}`}
						role="option"
						aria-selected={index === at}
						onPointerMove={index === at ? undefined : () => setPointed(index)}
						onClick={() => onChange(option.value)}
						className={cx("flex min-h-8 cursor-default items-center gap-2 rounded-6 px-2", index === at && "bg-sunken")}
					>
						<span className="min-w-0 flex-1 truncate" title={option.label}>
							{option.label}
						</span>
						{option.value === value && <CheckIcon className="shrink-0 text-accent" />}
					</div>
				))}
			</div>
			<State {...props} />
		</>
	);
}

/** State shows what the list does not: that results are loading, that there are none, or an error. */
function State({ options, busy, error, onRetry, empty, more }: ComboboxProps) {
	if (error) {
		return (
			<div role="alert" className="flex flex-col items-start gap-2 px-3 py-2">
				<p className="text-failed">{sentence(toApiError(error).message)}</p>
				{onRetry && (
					<Button small onClick={onRetry}>
						Try again
					</Button>
				)}
			</div>
		);
	}
	const said = busy ? "Searching…" : options.length === 0 ? empty : more;
	return (
		<p
			role="status"
			className={said ? cx("px-3 py-2 text-12 break-words text-muted", options.length > 0 && "border-t") : "sr-only"}
		>
			{said}
		</p>
	);
}

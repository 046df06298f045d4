import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { actionIcon } from "@/shared/canvas";
import { cx } from "@/ui/class";
import { Dialog } from "@/ui/dialog";
import { TextInput } from "@/ui/field";
import type { Candidate } from "./candidates";

export interface FinderProps {
	title: string;
	description?: ReactNode;
	candidates: readonly Candidate[];
	onPick: (id: string) => void;
	onClose: () => void;
}

/** Finder lets the user find a step by typing part of its name. */
export function Finder({ title, description, candidates, onPick, onClose }: FinderProps) {
	const [typed, setTyped] = useState("");
	const [at, setAt] = useState(0);
	const list = useId();
	const word = typed.trim().toLowerCase();
	const found = candidates.filter((one) => `${one.name} ${one.id} ${one.detail}`.toLowerCase().includes(word));
	const pick = (one: Candidate | undefined) => {
		if (!one) return;
		onClose();
		onPick(one.id);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
		else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
		else if (event.key === "Enter") pick(found[at]);
		else return;
		event.preventDefault();
	};
	return (
		<Dialog open onOpenChange={(open) => !open && onClose()} title={title} description={description} width="small">
			<TextInput
				role="combobox"
				aria-expanded
				aria-controls={list}
				aria-activedescendant={found[at] ? `${list}-${at}` : undefined}
				aria-label="Search steps"
				placeholder="Search…"
				value={typed}
				onChange={(event) => {
					setTyped(event.target.value);
					setAt(0);
				}}
				onKeyDown={onKeyDown}
			/>
			<div id={list} role="listbox" aria-label="Steps" className="-mx-2 max-h-80 min-h-16 overflow-y-auto">
				{found.map((one, index) => {
					const Shape = actionIcon(one.uses);
					return (
						// biome-ignore lint/a11y/useKeyWithClickEvents: the search field handles the keys
						<div
							key={one.id}
							id={`${list}-${index}`}
							role="option"
							tabIndex={-1}
							aria-selected={index === at}
							onClick={() => pick(one)}
							className={cx(
								"flex cursor-pointer items-center gap-3 rounded-6 px-2 py-1.5 hover:bg-sunken",
								index === at && "bg-sunken",
							)}
						>
							<Shape className="text-muted" />
							<span className="min-w-0 flex-1 truncate font-medium">{one.name}</span>
							<span className="max-w-[50%] truncate text-12 text-muted">{one.detail}</span>
						</div>
					);
				})}
				{found.length === 0 && <p className="px-2 py-4 text-muted">No steps match.</p>}
			</div>
		</Dialog>
	);
}

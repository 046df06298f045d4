import { type FormEvent, useId, useState } from "react";
import type { Step } from "@/shared/workflow/model";
import { IconButton } from "@/ui/button";
import { TextInput } from "@/ui/field";
import { ChevronLeftIcon, ChevronRightIcon } from "@/ui/icons";
import { parseRound } from "./model/path";
import { adjacentRound, roundNumbered, roundPosition, roundsOf } from "./model/rounds";
import type { PanesProps } from "./props";
import { loopAt } from "./selection";

type PagerProps = Pick<PanesProps, "record"> & { steps: readonly Step[]; path: string; select: (path: string) => void };

/** RoundPager shows which round of a loop is displayed, and switches to another one: the next one, or one by its number. */
export function RoundPager({ record, steps, path, select }: PagerProps) {
	const loop = loopAt(steps, path);
	if (!loop) return null;
	const rounds = roundsOf(record, loop.path, loop.step);
	const shown = roundPosition(rounds, path);
	const round = rounds.list[shown ?? 0];
	if (!round) return null;
	const from = shown === undefined ? round.path : path;
	const go = (way: 1 | -1) => {
		const next = adjacentRound(rounds, from, way);
		if (next) select(next);
	};
	const jump = (number: number) => {
		const next = roundNumbered(rounds, loop.path, from, number);
		if (next) select(next);
		return next !== undefined;
	};
	const number = (parseRound(round.path)?.index ?? 0) + 1;
	return (
		<div className="absolute top-3 left-3 flex max-w-[calc(100%-24px)] items-center gap-1 rounded-8 border bg-surface p-0.5 pl-3 shadow-lift">
			<span className="min-w-0 truncate">{loop.step.name ?? loop.step.id} · round</span>
			<NumberField number={number} onJump={jump} />
			<IconButton icon={ChevronLeftIcon} label="Previous round, [" small onClick={() => go(-1)} />
			<IconButton icon={ChevronRightIcon} label="Next round, ]" small onClick={() => go(1)} />
		</div>
	);
}

/** NumberField is the number of the shown round; Enter jumps to another one. */
function NumberField({ number, onJump }: { number: number; onJump: (number: number) => boolean }) {
	const [typed, setTyped] = useState(String(number));
	const [missing, setMissing] = useState(false);
	const [known, setKnown] = useState(number);
	if (known !== number) {
		setKnown(number);
		setTyped(String(number));
		setMissing(false);
	}
	const id = useId();
	const jump = (event: FormEvent) => {
		event.preventDefault();
		setMissing(!onJump(Number(typed)));
	};
	return (
		<form onSubmit={jump} className="flex shrink-0 items-center gap-1">
			<TextInput
				aria-label="Number of the round"
				aria-invalid={missing || undefined}
				aria-describedby={missing ? id : undefined}
				inputMode="numeric"
				value={typed}
				onFocus={(event) => event.target.select()}
				onChange={(event) => {
					setTyped(event.target.value);
					setMissing(false);
				}}
				className="!h-6 !w-14 tabular"
			/>
			{missing && (
				<span id={id} role="alert" className="text-12 whitespace-nowrap text-failed">
					not started
				</span>
			)}
		</form>
	);
}

import type { LoopState } from "@/shared/workflow/model";
import { useShortcut } from "@/shell/keys";
import { IconButton } from "@/ui/button";
import { NativeSelect } from "@/ui/field";
import { ChevronLeftIcon, ChevronRightIcon } from "@/ui/icons";
import { useReplayState } from "./store";

/** Rounds pages through the rounds of a loop, failed ones first. */
export function Rounds({ name, loop, keys }: { name: string; loop: LoopState; keys: boolean }) {
	const [, replay] = useReplayState();
	const at = loop.rounds.findIndex((round) => round.index === loop.shown);
	const go = (by: number) => {
		const round = loop.rounds[at + by];
		if (round) replay.choose(loop.path, round.index);
	};
	return (
		<>
			{keys && <Keys go={go} />}
			<div className="flex shrink-0 items-center gap-2 border-b px-4 py-1.5">
				<span className="min-w-0 truncate font-medium">{name}</span>
				<span className="tabular truncate text-muted">{loop.label}</span>
				<span className="ml-auto" />
				<IconButton
					small
					icon={ChevronLeftIcon}
					label={`Previous round of ${name}`}
					disabled={at <= 0}
					onClick={() => go(-1)}
				/>
				<NativeSelect
					aria-label={`Round of ${name}`}
					className="w-40"
					value={String(loop.shown ?? "")}
					onChange={(event) => replay.choose(loop.path, Number(event.target.value))}
					options={loop.rounds.map((round) => ({
						value: String(round.index),
						label: `Round ${round.index + 1} · ${round.status}`,
					}))}
				/>
				<IconButton
					small
					icon={ChevronRightIcon}
					label={`Next round of ${name}`}
					disabled={at < 0 || at >= loop.rounds.length - 1}
					onClick={() => go(1)}
				/>
			</div>
		</>
	);
}

/** Keys binds the shortcuts for the innermost loop. */
function Keys({ go }: { go: (by: number) => void }) {
	useShortcut("[", "Previous round", () => go(-1), "Canvas");
	useShortcut("]", "Next round", () => go(1), "Canvas");
	return null;
}

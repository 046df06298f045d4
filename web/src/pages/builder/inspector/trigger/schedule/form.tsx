import { useState } from "react";
import { useEditor } from "@/pages/builder/state";
import type { Trigger } from "@/shared/workflow/model";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { useProblem } from "../../form/context";
import { knownZone, NextTimes } from "./next";
import { cronOf, defaultSchedule, simpleOf } from "./simple";
import { SimpleSchedule } from "./simple-form";

interface ScheduleProps {
	trigger: Trigger;
	pointer: string;
}

type Mode = "simple" | "cron" | "every";

function modeOf(trigger: Trigger): Mode {
	if (typeof trigger.every === "string") return "every";
	return typeof trigger.cron !== "string" || simpleOf(trigger.cron) ? "simple" : "cron";
}

/** ScheduleForm edits a schedule: by choice, cron or interval, with a preview of the next times. */
export function ScheduleForm({ trigger, pointer }: ScheduleProps) {
	const editor = useEditor();
	const [mode, setMode] = useState<Mode>(() => modeOf(trigger));
	const cron = typeof trigger.cron === "string" ? trigger.cron : "";
	const zone = typeof trigger.timezone === "string" && trigger.timezone !== "" ? trigger.timezone : "UTC";
	const choose = (next: Mode) => {
		setMode(next);
		const { cron: _, every: __, timezone, ...others } = trigger;
		const kept = timezone === undefined ? {} : { timezone };
		if (next === "every") editor.setField(pointer, { ...others, every: "15m" } as never);
		else
			editor.setField(pointer, {
				...others,
				cron: (next === "cron" && cron) || cronOf(simpleOf(cron) ?? defaultSchedule),
				...kept,
			} as never);
	};
	return (
		<>
			<Field label="When">
				<NativeSelect
					value={mode}
					onChange={(event) => choose(event.target.value as Mode)}
					options={[
						{ value: "simple", label: "At set times" },
						{ value: "every", label: "At an interval" },
						{ value: "cron", label: "Cron expression" },
					]}
				/>
			</Field>
			{mode === "every" && <Interval trigger={trigger} pointer={pointer} />}
			{mode === "simple" && (
				<SimpleSchedule cron={cron} onChange={(text) => editor.setField(`${pointer}/cron`, text)} />
			)}
			{mode === "cron" && <CronField cron={cron} pointer={`${pointer}/cron`} />}
			{mode !== "every" && (
				<>
					<ZoneField zone={trigger.timezone as string | undefined} pointer={`${pointer}/timezone`} />
					<NextTimes cron={cron} zone={zone} />
				</>
			)}
		</>
	);
}

function Interval({ trigger, pointer }: ScheduleProps) {
	const editor = useEditor();
	const problem = useProblem(`${pointer}/every`, true);
	return (
		<div data-pointer={`${pointer}/every`}>
			<Field label="Every" required hint="A duration such as 90s, 15m or 1h30m, at least 10s." error={problem}>
				<TextInput
					value={typeof trigger.every === "string" ? trigger.every : ""}
					placeholder="15m"
					onChange={(event) => editor.setField(`${pointer}/every`, event.target.value)}
				/>
			</Field>
		</div>
	);
}

function CronField({ cron, pointer }: { cron: string; pointer: string }) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field
				label="Cron"
				required
				error={problem}
				hint="Minute, hour, day, month, day of the week: 0 3 * * * is every day at 03:00."
			>
				<TextInput
					value={cron}
					placeholder="0 3 * * *"
					spellCheck={false}
					className="font-mono"
					onChange={(event) => editor.setField(pointer, event.target.value)}
				/>
			</Field>
		</div>
	);
}

const zones = ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];

function ZoneField({ zone, pointer }: { zone: string | undefined; pointer: string }) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
	const odd = zone !== undefined && zone !== "" && !zones.includes(zone);
	return (
		<div data-pointer={pointer}>
			<Field
				label="Time zone"
				error={problem ?? (odd && !knownZone(zone) ? "Your browser does not know this time zone." : undefined)}
			>
				<NativeSelect
					value={zone ?? ""}
					onChange={(event) => editor.setField(pointer, event.target.value || undefined)}
					options={[
						{ value: "", label: "UTC (default)" },
						...(own === "UTC" ? [] : [{ value: own, label: `${own} (yours)` }]),
						...(odd ? [{ value: zone, label: zone }] : []),
						...zones.filter((name) => name !== own && name !== "UTC").map((name) => ({ value: name, label: name })),
					]}
				/>
			</Field>
		</div>
	);
}

import { Field, NativeSelect, TextInput } from "@/ui/field";
import { cronOf, defaultSchedule, type Repeat, type Simple, simpleOf } from "./simple";

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const repeats: { value: Repeat; label: string }[] = [
	{ value: "hour", label: "Every hour" },
	{ value: "day", label: "Every day" },
	{ value: "weekdays", label: "Monday to Friday" },
	{ value: "week", label: "Every week" },
	{ value: "month", label: "Every month" },
];

const numbers = (from: number, to: number) =>
	Array.from({ length: to - from + 1 }, (_, i) => ({ value: String(from + i), label: String(from + i) }));

/** SimpleSchedule edits a common schedule without cron. */
export function SimpleSchedule({ cron, onChange }: { cron: string; onChange: (cron: string) => void }) {
	const simple = simpleOf(cron) ?? defaultSchedule;
	const set = (patch: Partial<Simple>) => onChange(cronOf({ ...simple, ...patch }));
	const two = (number: number) => String(number).padStart(2, "0");
	return (
		<div className="grid grid-cols-2 gap-3">
			<Field label="Repeat">
				<NativeSelect
					value={simple.repeat}
					options={repeats}
					onChange={(event) => set({ repeat: event.target.value as Repeat })}
				/>
			</Field>
			{simple.repeat === "week" && (
				<Field label="On">
					<NativeSelect
						value={String(simple.weekday)}
						options={[1, 2, 3, 4, 5, 6, 0].map((day) => ({ value: String(day), label: weekdays[day] as string }))}
						onChange={(event) => set({ weekday: Number(event.target.value) })}
					/>
				</Field>
			)}
			{simple.repeat === "month" && (
				<Field label="On day">
					<NativeSelect
						value={String(simple.day)}
						options={numbers(1, 31)}
						onChange={(event) => set({ day: Number(event.target.value) })}
					/>
				</Field>
			)}
			{simple.repeat === "hour" ? (
				<Field label="At minute">
					<NativeSelect
						value={String(simple.minute)}
						options={numbers(0, 59)}
						onChange={(event) => set({ minute: Number(event.target.value) })}
					/>
				</Field>
			) : (
				<Field label="At">
					<TextInput
						type="time"
						value={`${two(simple.hour)}:${two(simple.minute)}`}
						onChange={(event) => {
							const [hour, minute] = event.target.value.split(":").map(Number);
							if (hour !== undefined && minute !== undefined) set({ hour, minute });
						}}
					/>
				</Field>
			)}
		</div>
	);
}

import { useState } from "react";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { NativeSelect } from "@/ui/field";
import { type Connection, find, useConnections, useOpenTo } from "./data";
import { ConnectDialog } from "./dialog";
import { statusName } from "./status";

interface ConnectionSelectProps {
	/** The name of the connection; empty for none. */
	value: string;
	onChange: (name: string) => void;
}

function labelOf({ name, status }: Connection, isOpen: boolean): string {
	if (!isOpen) return `${name} (not open to you)`;
	return status === "connected" ? name : `${name} (${statusName(status).toLowerCase()})`;
}

/** ConnectionSelect selects a connection by name, or makes a new one and selects it. */
export function ConnectionSelect({ value, onChange }: ConnectionSelectProps) {
	const [open, setOpen] = useState(false);
	const write = useMay("write");
	const { data } = useConnections();
	const isOpen = useOpenTo();
	const selected = find(data ?? [], value);
	const options = [
		{ value: "", label: "None" },
		...(value && !selected ? [{ value, label: data ? `${value} (does not exist)` : value }] : []),
		...(data ?? []).map((one) => ({
			value: one.name,
			label: labelOf(one, isOpen(one)),
			disabled: one !== selected && !isOpen(one),
		})),
	];
	return (
		<div className="flex flex-wrap gap-2">
			<NativeSelect
				className="min-w-40 flex-1"
				value={selected?.name ?? value}
				options={options}
				onChange={(event) => onChange(event.target.value)}
			/>
			{write && <Button onClick={() => setOpen(true)}>New connection…</Button>}
			{open && (
				<ConnectDialog
					onClose={() => setOpen(false)}
					onConnected={({ name }) => {
						setOpen(false);
						onChange(name);
					}}
				/>
			)}
		</div>
	);
}

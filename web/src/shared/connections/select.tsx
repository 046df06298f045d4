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
	/** The integration that the connection must belong to, if any. */
	integration?: string;
	/** The service that a new connection is for: the integration, or one that shares its connections. */
	service?: string;
}

function labelOf({ name, status }: Connection, isOpen: boolean): string {
	if (!isOpen) return `${name} (not open to you)`;
	return status === "connected" ? name : `${name} (${statusName(status).toLowerCase()})`;
}

/** ConnectionSelect selects a connection by name, or makes a new one and selects it. */
export function ConnectionSelect({ value, onChange, integration, service }: ConnectionSelectProps) {
	const [open, setOpen] = useState(false);
	const write = useMay("write");
	const { data } = useConnections();
	const isOpen = useOpenTo();
	const selected = find(data ?? [], value);
	const fitting = (data ?? []).filter((one) => !integration || one.integration === integration || one === selected);
	const options = [
		{ value: "", label: integration ? "Choose a connection" : "None" },
		...(value && !selected ? [{ value, label: data ? `${value} (does not exist)` : value }] : []),
		...fitting.map((one) => ({
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
					{...(service && { integration: service })}
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

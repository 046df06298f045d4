import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type Connection, useIntegrations } from "@/shared/connections/data";
import { reconnectsByConsent } from "@/shared/connections/form";
import { useReconnect } from "@/shared/connections/reconnect";
import { testVerb } from "@/shared/connections/status";
import { Button, IconButton } from "@/ui/button";
import { EditIcon, MoreIcon, RetryIcon, TrashIcon } from "@/ui/icons";
import { Menu, MenuItem, MenuLine } from "@/ui/menu";
import { DeleteDialog } from "./delete-dialog";
import { useTest } from "./use-test";

/** RowActions tests, reconnects, opens and deletes a connection from the list. */
export function RowActions({ connection }: { connection: Connection }) {
	const { id, name } = connection;
	const [deleting, setDeleting] = useState(false);
	const navigate = useNavigate();
	const test = useTest(connection);
	const reconnect = useReconnect(connection);
	const consents = reconnectsByConsent(connection, useIntegrations().data);
	return (
		<span className="row-control flex justify-end gap-1">
			{consents && connection.status === "needs_reconnect" ? (
				<Button
					small
					aria-label={`Reconnect ${name}`}
					busy={reconnect.isStarting}
					onClick={reconnect.start}
					className="max-sm:hidden"
				>
					Reconnect
				</Button>
			) : (
				<Button
					small
					aria-label={`${testVerb(connection)} ${name}`}
					busy={test.isPending}
					onClick={() => test.mutate()}
					className="max-sm:hidden"
				>
					{testVerb(connection)}
				</Button>
			)}
			<Menu trigger={<IconButton icon={MoreIcon} label={`More actions for ${name}`} small />}>
				<MenuItem onSelect={() => test.mutate()}>{testVerb(connection)}</MenuItem>
				{consents && (
					<MenuItem icon={RetryIcon} onSelect={reconnect.start}>
						Reconnect…
					</MenuItem>
				)}
				<MenuItem icon={EditIcon} onSelect={() => void navigate({ to: "/connections/$id", params: { id } })}>
					Open
				</MenuItem>
				<MenuLine />
				<MenuItem icon={TrashIcon} danger onSelect={() => setDeleting(true)}>
					Delete…
				</MenuItem>
			</Menu>
			{reconnect.dialog}
			{deleting && <DeleteDialog connection={connection} onClose={() => setDeleting(false)} />}
		</span>
	);
}

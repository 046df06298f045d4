import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { usePages } from "@/api/query";
import { useSession } from "@/api/session";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { TrashIcon } from "@/ui/icons";
import { PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { ErrorNote } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { browserName } from "./agent";
import { Section, SettingsFrame } from "./frame";
import { roleName } from "./roles";

export default function AccountPage() {
	const { user, role, workspace } = useSession();
	return (
		<SettingsFrame>
			<PageHeader title="Your account" lead={`${user.email} · ${roleName(role)} of ${workspace.name}`} />
			<div>
				<Section title="Name" lead="Shown to other members.">
					<Name />
				</Section>
				<Section title="Password" lead="Changing it signs you out everywhere else.">
					<Password />
				</Section>
				<Section title="Sessions" lead="Where you are currently signed in.">
					<Sessions />
				</Section>
			</div>
		</SettingsFrame>
	);
}

type Change = Schema["AccountPatch"];

/** useUpdateAccount updates the account of the current user. */
function useUpdateAccount(done: string, after: () => void = () => undefined) {
	const queries = useQueryClient();
	return useMutation({
		meta: { quiet: true },
		mutationFn: (body: Change) => got(direct.PATCH("/ui/v1/account", { body })),
		onSuccess: async () => {
			await Promise.all([
				queries.invalidateQueries({ queryKey: ["session"] }),
				queries.invalidateQueries({ queryKey: ["sessions"] }),
			]);
			after();
			toast.done(done);
		},
	});
}

function Name() {
	const { user } = useSession();
	const [name, setName] = useState(user.name);
	const change = useUpdateAccount("Your name was changed.");
	const error = change.error ? toApiError(change.error) : undefined;
	const field = error?.field("/name");
	return (
		<form
			className="flex max-w-md flex-col gap-3"
			onSubmit={(event) => {
				event.preventDefault();
				change.mutate({ name: name.trim() });
			}}
		>
			<Field label="Name" error={field}>
				<TextInput autoComplete="name" value={name} onChange={(event) => setName(event.target.value)} />
			</Field>
			{error && !field && <ErrorNote error={error} />}
			<div>
				<Button type="submit" busy={change.isPending} disabled={name.trim() === user.name}>
					Save
				</Button>
			</div>
		</form>
	);
}

function Password() {
	const { user } = useSession();
	const [current, setCurrent] = useState("");
	const [password, setPassword] = useState("");
	const change = useUpdateAccount("Your password was changed.", () => {
		setCurrent("");
		setPassword("");
	});
	const error = change.error ? toApiError(change.error) : undefined;
	const [old, fresh] = [error?.field("/current_password"), error?.field("/password")];
	return (
		<form
			className="flex max-w-md flex-col gap-3"
			onSubmit={(event) => {
				event.preventDefault();
				change.mutate({ password, ...(user.has_password && { current_password: current }) });
			}}
		>
			<input type="hidden" autoComplete="username" value={user.email} readOnly />
			{user.has_password && (
				<Field label="Current password" error={old}>
					<TextInput
						type="password"
						autoComplete="current-password"
						value={current}
						onChange={(event) => setCurrent(event.target.value)}
					/>
				</Field>
			)}
			<Field label="New password" error={fresh} hint="At least 12 characters. Avoid common words and sequences.">
				<TextInput
					type="password"
					autoComplete="new-password"
					value={password}
					onChange={(event) => setPassword(event.target.value)}
				/>
			</Field>
			{error && !old && !fresh && <ErrorNote error={error} />}
			<div>
				<Button type="submit" busy={change.isPending} disabled={password === ""}>
					Change password
				</Button>
			</div>
		</form>
	);
}

type Session = Schema["Session"];

function Sessions() {
	const [everywhere, setEverywhere] = useState(false);
	const queries = useQueryClient();
	const pages = usePages(["sessions"], (cursor, signal) =>
		got(direct.GET("/ui/v1/sessions", { params: { query: { cursor } }, signal })),
	);
	const end = useMutation({
		mutationFn: (id: string) => got(direct.DELETE("/ui/v1/sessions/{id}", { params: { path: { id } } })),
		onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
	});
	return (
		<div className="flex flex-col gap-3">
			<Card>
				<Paged pages={pages} rows={2} empty={null}>
					{(sessions: Session[]) => (
						<Table
							label="Sessions"
							rows={sessions}
							rowKey={(session) => session.id}
							columns={[
								{
									key: "where",
									header: "Browser",
									cell: (session) => (
										<span className="flex flex-wrap items-center gap-2">
											<span className="font-medium" title={session.user_agent}>
												{browserName(session.user_agent)}
											</span>
											<span className="text-12 text-muted">{session.address}</span>
											{session.current && <Badge tone="good">This session</Badge>}
										</span>
									),
								},
								{ key: "seen", header: "Last seen", cell: (session) => <RelativeTime at={session.last_seen_at} /> },
								{
									key: "end",
									header: <span className="sr-only">Sign out</span>,
									align: "right",
									cell: (session) =>
										!session.current && (
											<IconButton
												icon={TrashIcon}
												label={`Sign out ${browserName(session.user_agent)}`}
												onClick={() => end.mutate(session.id)}
											/>
										),
								},
							]}
						/>
					)}
				</Paged>
			</Card>
			<div>
				<Button kind="danger" onClick={() => setEverywhere(true)}>
					Sign out everywhere
				</Button>
			</div>
			<ConfirmDialog
				open={everywhere}
				onOpenChange={setEverywhere}
				title="Sign out everywhere?"
				verb="Sign out"
				danger
				onConfirm={async () => {
					await got(direct.DELETE("/ui/v1/sessions"));
					window.location.assign("/sign-in");
				}}
			>
				This ends all your sessions, including this one.
			</ConfirmDialog>
		</div>
	);
}

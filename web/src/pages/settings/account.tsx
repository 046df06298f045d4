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
import { browser } from "./agent";
import { Frame, Section } from "./frame";
import { roleName } from "./roles";

export default function AccountPage() {
	const { user, role, workspace } = useSession();
	return (
		<Frame>
			<PageHeader title="Your account" lead={`${user.email} · ${roleName(role)} of ${workspace.name}`} />
			<div>
				<Section title="Name" lead="How others see you.">
					<Name />
				</Section>
				<Section title="Password" lead="Your other sessions end when you change it.">
					<Password />
				</Section>
				<Section title="Sessions" lead="Where you are signed in.">
					<Sessions />
				</Section>
			</div>
		</Frame>
	);
}

type Change = Schema["AccountPatch"];

/** useChange changes the account of whoever is signed in. */
function useChange(done: string, after: () => void = () => undefined) {
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
	const change = useChange("Your name is changed.");
	const refused = change.error ? toApiError(change.error) : undefined;
	const field = refused?.field("/name");
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
			{refused && !field && <ErrorNote error={refused} />}
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
	const change = useChange("Your password is changed.", () => {
		setCurrent("");
		setPassword("");
	});
	const refused = change.error ? toApiError(change.error) : undefined;
	const [old, fresh] = [refused?.field("/current_password"), refused?.field("/password")];
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
			<Field label="New password" error={fresh} hint="At least 10 characters.">
				<TextInput
					type="password"
					autoComplete="new-password"
					value={password}
					onChange={(event) => setPassword(event.target.value)}
				/>
			</Field>
			{refused && !old && !fresh && <ErrorNote error={refused} />}
			<div>
				<Button type="submit" busy={change.isPending} disabled={password === ""}>
					Change the password
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
									header: "Where",
									cell: (session) => (
										<span className="flex flex-wrap items-center gap-2">
											<span className="font-medium" title={session.user_agent}>
												{browser(session.user_agent)}
											</span>
											<span className="text-12 text-muted">{session.address}</span>
											{session.current && <Badge tone="good">This one</Badge>}
										</span>
									),
								},
								{ key: "seen", header: "Last here", cell: (session) => <RelativeTime at={session.last_seen_at} /> },
								{
									key: "end",
									header: <span className="sr-only">End</span>,
									align: "right",
									cell: (session) =>
										!session.current && (
											<IconButton
												icon={TrashIcon}
												label={`End the session of ${browser(session.user_agent)}`}
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
				All your sessions end, this one too.
			</ConfirmDialog>
		</div>
	);
}

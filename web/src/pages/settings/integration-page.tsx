import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { toApiError } from "@/api/error";
import { useMay } from "@/api/session";
import { useConnections, useIntegrations } from "@/shared/connections/data";
import { ConnectionStatus } from "@/shared/connections/status";
import { Button } from "@/ui/button";
import { TrashIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { PageHeader } from "@/ui/page";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { DeleteIntegration } from "./delete-integration";
import { SettingsFrame } from "./frame";
import { LeaveWarning } from "./leave-warning";
import { manifestQuery, readAgain, replaceManifest, type Stored } from "./manifest";
import { ManifestConflict } from "./manifest-conflict";
import { ManifestEditor } from "./manifest-editor";

/** IntegrationPage shows the manifest of an own integration, and changes it. */
export default function IntegrationPage() {
	const { id = "" } = useParams({ strict: false });
	return <OwnIntegration id={id} />;
}

export function OwnIntegration({ id }: { id: string }) {
	const { data, error, refetch } = useQuery(manifestQuery(id));
	const name = useIntegrations().data?.find((one) => one.id === id)?.name ?? id;
	return (
		<SettingsFrame>
			{data ? (
				<Content key={id} id={id} name={name} stored={data} />
			) : (
				<>
					<PageHeader title={name} lead={<Back />} />
					<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
				</>
			)}
		</SettingsFrame>
	);
}

const Back = () => <Link to="/settings/integrations">Integrations</Link>;

function Content({ id, name, stored }: { id: string; name: string; stored: Stored }) {
	const [base, setBase] = useState(stored);
	const [text, setText] = useState(stored.data.manifest);
	const [seen, setSeen] = useState(stored.etag);
	const [theirs, setTheirs] = useState<Stored>();
	const [deleting, setDeleting] = useState(false);
	const isGone = useRef(false);
	const write = useMay("write");
	const client = useQueryClient();
	const navigate = useNavigate();
	const isDirty = text !== base.data.manifest;
	const adopt = (next: Stored) => {
		setBase(next);
		setText(next.data.manifest);
	};
	if (stored.etag !== seen) {
		setSeen(stored.etag);
		if (!isDirty) adopt(stored); // somebody else has changed it
	}
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: async (what: { text: string; etag: string }) => {
			try {
				return await replaceManifest(id, what.text, what.etag);
			} catch (thrown) {
				if (toApiError(thrown).code !== "version_conflict") throw thrown;
				setTheirs(await client.fetchQuery({ ...manifestQuery(id), staleTime: 0 }));
				void client.invalidateQueries({ queryKey: ["integrations"], exact: true }); // its name
				return undefined;
			}
		},
		onSuccess: async (saved, what) => {
			if (!saved) return;
			setTheirs(undefined);
			setBase({ data: { ...base.data, manifest: what.text }, etag: saved.etag });
			toast.done(`“${saved.data.name}” was saved`);
			await readAgain(client);
		},
		onError: () => setTheirs(undefined),
	});
	return (
		<>
			<PageHeader
				title={name}
				lead={<Back />}
				actions={
					write && (
						<>
							<Button icon={TrashIcon} onClick={() => setDeleting(true)}>
								Delete
							</Button>
							<Button
								kind="primary"
								busy={save.isPending}
								disabled={!isDirty}
								onClick={() => save.mutate({ text, etag: base.etag })}
							>
								Save
							</Button>
						</>
					)
				}
			/>
			<p className="text-muted">
				<code className="font-mono text-12 text-text">{id}</code> · updated <RelativeTime at={stored.data.updated_at} />
				.
				{write &&
					" A change applies at once, also to runs in progress. If it sends the credential elsewhere or in another way, people must confirm that before its connections work again."}
			</p>
			<ManifestEditor text={text} onChange={setText} readOnly={!write} error={save.error} sent={save.variables?.text} />
			<Connections id={id} />
			{theirs && (
				<ManifestConflict
					name={name}
					theirs={theirs}
					busy={save.isPending}
					onClose={() => setTheirs(undefined)}
					onTake={() => {
						adopt(theirs);
						setTheirs(undefined);
					}}
					onOverwrite={() => save.mutate({ text, etag: theirs.etag })}
				/>
			)}
			{deleting && (
				<DeleteIntegration
					id={id}
					name={name}
					onClose={() => setDeleting(false)}
					onDeleted={() => {
						isGone.current = true;
						return navigate({ to: "/settings/integrations", replace: true });
					}}
				/>
			)}
			<LeaveWarning isDirty={() => isDirty && !isGone.current} />
		</>
	);
}

/** Connections lists the connections of an integration, with those that must be confirmed again. */
function Connections({ id }: { id: string }) {
	const connections = useConnections().data?.filter(({ integration }) => integration === id);
	if (!connections) return null;
	return (
		<section aria-label="Connections" className="flex flex-col gap-2">
			<h2 className="text-14 font-semibold">Connections</h2>
			{connections.length === 0 ? (
				<p className="text-muted">
					None yet. Make one under <Link to="/connections">Connections</Link>, or in the settings of a step.
				</p>
			) : (
				<ul className="flex flex-col gap-2">
					{connections.map((one) => (
						<li key={one.id} className="flex flex-wrap items-center gap-x-3 gap-y-1">
							<Link to="/connections/$id" params={{ id: one.id }}>
								{one.name}
							</Link>
							<ConnectionStatus status={one.status} />
						</li>
					))}
				</ul>
			)}
		</section>
	);
}

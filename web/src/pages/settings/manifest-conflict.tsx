import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { RelativeTime } from "@/ui/time";
import type { Stored } from "./manifest";

interface ManifestConflictProps {
	name: string;
	/** The manifest that somebody else has saved. */
	theirs: Stored;
	busy: boolean;
	onClose: () => void;
	onTake: () => void;
	onOverwrite: () => void;
}

/** ManifestConflict asks what to keep when somebody else has changed a manifest meanwhile. */
export function ManifestConflict({ name, theirs, busy, onClose, onTake, onOverwrite }: ManifestConflictProps) {
	return (
		<Dialog
			open
			guarded
			width="large"
			onOpenChange={(open) => !open && onClose()}
			title={`“${name}” was changed by somebody else`}
			description={
				<>
					The manifest was changed <RelativeTime at={theirs.data.updated_at} />, after you opened it. Your changes are
					not saved yet.
				</>
			}
			actions={
				<>
					<Button disabled={busy} onClick={onClose}>
						Cancel
					</Button>
					<Button disabled={busy} onClick={onTake}>
						Discard mine
					</Button>
					<Button kind="danger" busy={busy} onClick={onOverwrite}>
						Overwrite with mine
					</Button>
				</>
			}
		>
			<p className="text-muted">This is the manifest now:</p>
			<CodeEditor label="The manifest now" language="yaml" value={theirs.data.manifest} readOnly height={260} />
		</Dialog>
	);
}

import { NodeToolbar, Position } from "@xyflow/react";
import { duplicateSelected, removeSelected } from "@/pages/builder/command/edit";
import { NodeMenu } from "@/pages/builder/command/menu";
import { useReplay } from "@/pages/builder/replay/replay";
import { useEditor, useReadOnly, useSelection } from "@/pages/builder/state";
import { IconButton } from "@/ui/button";
import { CopyIcon, MoreIcon, PlayIcon, TrashIcon } from "@/ui/icons";

/** SelectionBar is the toolbar above the selection. */
export function SelectionBar() {
	const editor = useEditor();
	const selected = useSelection();
	const { testStep } = useReplay();
	if (useReadOnly() || selected.length === 0) return null;
	const [first] = selected;
	const single = selected.length === 1 && first !== undefined && !first.startsWith("@") ? first : null;
	const steps = selected.some((node) => !node.startsWith("@"));
	return (
		<NodeToolbar nodeId={[...selected]} isVisible position={Position.Top} offset={14} align="end">
			<div
				role="toolbar"
				aria-label="Selection"
				className="nodrag nopan flex translate-x-5 rounded-8 border bg-surface p-0.5 shadow-lift"
			>
				{single !== null && (
					<IconButton icon={PlayIcon} label="Test this step (T)" small tabIndex={-1} onClick={() => testStep(single)} />
				)}
				{steps && (
					<IconButton icon={CopyIcon} label="Duplicate" small tabIndex={-1} onClick={() => duplicateSelected(editor)} />
				)}
				<IconButton icon={TrashIcon} label="Remove (Del)" small tabIndex={-1} onClick={() => removeSelected(editor)} />
				<NodeMenu trigger={<IconButton icon={MoreIcon} label="More actions" small tabIndex={-1} />} />
			</div>
		</NodeToolbar>
	);
}

import { lazy, Suspense, useId, useState } from "react";
import { DatabaseIcon } from "@/pages/builder/data/icons";
import { Button } from "@/ui/button";
import { Popover } from "@/ui/popover";
import { Skeleton } from "@/ui/states";
import { DataTree } from "../../data/tree";
import { useProblem } from "../form/context";
import { useExpressions, usePreview } from "./context";
import type { ExpressionFieldProps } from "./props";
import { PreviewLine } from "./value";

const Editor = lazy(() => import("./editor"));

/** ExpressionField edits text with expressions: with completion, diagnostics and a preview of the value. */
export function ExpressionField(props: ExpressionFieldProps) {
	const { value, pointer, form, lines = false } = props;
	const preview = usePreview(pointer, value, form);
	const { scope } = useExpressions();
	const problem = useProblem(pointer, false);
	const [insert, setInsert] = useState<{ path: string; count: number }>();
	const [open, setOpen] = useState(false);
	const id = useId();
	return (
		<div className="flex min-w-0 flex-col gap-1">
			<Suspense fallback={<Skeleton className={lines ? "h-20 w-full" : "h-[34px] w-full"} />}>
				<Editor
					{...props}
					lines={lines}
					scope={() => scope(pointer)}
					wrong={preview.state === "wrong" ? preview : null}
					insert={insert}
					describedBy={id}
				/>
			</Suspense>
			<div className="flex min-w-0 items-start gap-2">
				<PreviewLine preview={preview} id={id} told={problem !== undefined} />
				<Popover
					label="Insert data"
					align="end"
					open={open}
					onOpenChange={setOpen}
					className="w-90 p-2"
					trigger={
						<Button small kind="quiet" icon={DatabaseIcon} className="-my-1 shrink-0 text-12">
							Insert data
						</Button>
					}
				>
					<DataTree
						pointer={pointer}
						onPick={(path) => {
							setInsert((last) => ({ path, count: (last?.count ?? 0) + 1 }));
							setOpen(false);
						}}
					/>
				</Popover>
			</div>
		</div>
	);
}

import type { Doc } from "@/shared/workflow/model";
import type { RunRecord } from "./model/record";
import type { Selection } from "./selection";

export interface PanesProps {
	run: string;
	record: RunRecord;
	doc: Pick<Doc, "triggers" | "steps" | "layout">;
	selection: Selection;
}

export interface DetailProps extends PanesProps {
	/** Omits the title, which is shown elsewhere. */
	bare?: boolean;
}

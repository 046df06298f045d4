import type { TriggerEditor } from "../editor";
import { EventWorkflows } from "./workflows";

export const event: TriggerEditor = { After: EventWorkflows, without: ["workflows"] };

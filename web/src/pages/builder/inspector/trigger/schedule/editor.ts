import type { TriggerEditor } from "../editor";
import { ScheduleForm } from "./form";

export const schedule: TriggerEditor = { Before: ScheduleForm, without: ["cron", "every", "timezone"] };

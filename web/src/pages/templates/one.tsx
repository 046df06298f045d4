import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Template() {
	return (
		<Page>
			<PageHeader title="Template" />
			<Card>
				<EmptyState title="No template." />
			</Card>
		</Page>
	);
}

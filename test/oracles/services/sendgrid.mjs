import { Client } from "@sendgrid/client";
import { MailService } from "@sendgrid/mail";

/** @type {(i: any) => any} */
const mail = (i) => ({
  from: i.from,
  to: i.to,
  cc: i.cc,
  bcc: i.bcc,
  replyTo: i.reply_to,
  attachments: i.attachments?.map(({ name, content }) => ({ filename: name, type: types[name.split(".").pop()], content: content.toString("base64") })),
  sendAt: i.send_at && Date.parse(i.send_at) / 1000,
  asm: i.unsubscribe_group && { groupId: i.unsubscribe_group },
  categories: i.categories,
  customArgs: i.custom_args,
  mailSettings: i.sandbox && { sandboxMode: { enable: true } },
  isMultiple: i.separate ?? false,
});
const types = { pdf: "application/pdf", txt: "text/plain; charset=utf-8" };

/** @type {import("../service.d.ts").Service<import("@sendgrid/mail").MailService>} */
export default {
  client: "@sendgrid/mail",
  auth: "bearer",
  secrets: { token: "SG.made-up" },
  connect: ({ at, secrets }) => {
    const client = new Client();
    client.setApiKey(secrets.token);
    client.setDefaultRequest("baseUrl", at("https://api.sendgrid.com/"));
    const service = new MailService();
    service.setClient(client);
    return service;
  },
  operations: {
    send_email: (service, i) => service.send({ ...mail(i), subject: i.subject, text: i.text, html: i.html }),
    send_template: (service, i) => service.send({ ...mail(i), templateId: i.template, dynamicTemplateData: i.data }),
  },
  without: Object.fromEntries(
    [
      ...["upsert_contact", "upsert_contacts", "get_contact_job", "find_contact", "search_contacts", "delete_contact", "list_contact_fields"],
      ...["list_lists", "create_list", "delete_list", "remove_from_list", "list_templates", "list_senders", "validate_email"],
      ...["list_suppressions", "delete_suppression", "add_unsubscribes", "delete_unsubscribe", "list_unsubscribe_groups"],
    ].map((name) => [name, "@sendgrid/client posts what it is given; the OpenAPI description has the request"]),
  ),
};

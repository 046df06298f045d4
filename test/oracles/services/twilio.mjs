import twilio from "twilio";

/** @type {(time: string) => any} */
const time = (text) => text && new Date(text);
const whatsapp = (number) => number && `whatsapp:${number.replace(/^whatsapp:/, "")}`;
const limit = ({ limit = 100, all }) => (all ? { pageSize: 100 } : { limit, pageSize: Math.min(limit, 100) });

// say returns the TwiML that reads a text.
function say({ text, language, voice }) {
  if (text === undefined) return undefined;
  const response = new twilio.twiml.VoiceResponse();
  response.say({ ...(language && { language }), ...(voice && { voice }) }, text);
  return response;
}

/** @type {import("../service.d.ts").Service<import("twilio").Twilio>} */
export default {
  client: "twilio",
  auth: "basic",
  secrets: { auth_token: "made-up" },
  connect: ({ at, secrets }) => {
    const http = new twilio.RequestClient();
    const request = http.request.bind(http);
    http.request = (options) => request({ ...options, uri: at(options.uri) });
    return twilio("ACa1b2c3d4e5f60718293a4b5c6d7e8f90", secrets.auth_token, { httpClient: http });
  },
  operations: {
    "hooks/messages": async ({ incomingPhoneNumbers }, i, { at }) => {
      if (i.does === "register") {
        const [{ sid }] = await incomingPhoneNumbers.list({ phoneNumber: i.number, limit: 1 });
        await incomingPhoneNumbers(sid).update({ smsUrl: i.hook.url, smsMethod: "POST" });
        return;
      }
      try {
        const number = await incomingPhoneNumbers(i.subscription.id).fetch();
        if (number.smsUrl === at(i.hook.url)) await number.update({ smsUrl: "" });
      } catch (error) {
        if (error.status !== 404) throw error; // it is gone
      }
    },
    send_message: ({ messages }, i) =>
      messages.create({
        from: i.from,
        messagingServiceSid: i.messaging_service,
        to: i.to,
        body: i.text,
        mediaUrl: i.media,
        sendAt: time(i.send_at),
        scheduleType: i.send_at ? "fixed" : undefined,
        validityPeriod: i.validity,
        shortenUrls: i.shorten_links,
        statusCallback: i.status_callback,
      }),
    send_whatsapp: ({ messages }, i) =>
      messages.create({
        from: whatsapp(i.from),
        messagingServiceSid: i.messaging_service,
        to: whatsapp(i.to),
        body: i.text,
        mediaUrl: i.media && [i.media],
        contentSid: i.template,
        contentVariables: i.variables && JSON.stringify(i.variables),
        statusCallback: i.status_callback,
      }),
    get_message: ({ messages }, i) => messages(i.message).fetch(),
    list_messages: ({ messages }, i) => messages.list({ to: i.to, from: i.from, dateSentAfter: time(i.since), dateSentBefore: time(i.until), ...limit(i) }),
    "triggers/new_message": ({ messages }, i) =>
      i.cursor?.link
        ? messages.getPage(`https://api.twilio.com${i.cursor.link}`)
        : messages.page({ to: i.to, from: i.from, dateSentAfter: time(i.cursor?.since ?? "2026-11-18T08:45:00Z"), pageSize: 100 }),
    cancel_message: ({ messages }, i) => messages(i.message).update({ status: "canceled" }),
    redact_message: ({ messages }, i) => messages(i.message).update({ body: "" }),
    delete_message: ({ messages }, i) => messages(i.message).remove(),
    list_media: ({ messages }, i) => messages(i.message).media.list(limit(i)),
    make_call: ({ calls }, i) =>
      calls.create({
        from: i.from,
        to: i.to,
        twiml: i.twiml ?? say(i),
        url: i.url,
        record: i.record,
        machineDetection: i.machine_detection,
        timeout: i.ring_time,
        sendDigits: i.send_digits,
        statusCallback: i.status_callback,
      }),
    get_call: ({ calls }, i) => calls(i.call).fetch(),
    list_calls: ({ calls }, i) => calls.list({ to: i.to, from: i.from, status: i.status, startTimeAfter: time(i.since), startTimeBefore: time(i.until), ...limit(i) }),
    end_call: ({ calls }, i) => calls(i.call).update({ status: "completed" }),
    list_recordings: ({ recordings }, i) => recordings.list({ callSid: i.call, dateCreatedAfter: time(i.since), dateCreatedBefore: time(i.until), ...limit(i) }),
    look_up_number: ({ lookups }, i) => lookups.v2.phoneNumbers(i.number).fetch({ fields: i.details?.join(","), countryCode: i.country }),
    send_code: ({ verify }, i) => verify.v2.services(i.service).verifications.create({ to: i.to, channel: i.channel ?? "sms", locale: i.language }),
    check_code: ({ verify }, i) => verify.v2.services(i.service).verificationChecks.create({ to: i.to, code: i.code }),
    list_numbers: ({ incomingPhoneNumbers }, i) => incomingPhoneNumbers.list(limit(i)),
    list_templates: ({ content }, i) => content.v1.contents.list(limit(i)),
    list_template_variables: ({ content }, i) => content.v1.contents(i.template).fetch(),
    list_messaging_services: ({ messaging }, i) => messaging.v1.services.list(limit(i)),
    list_whatsapp_senders: ({ messaging }, i) => messaging.v2.channelsSenders.list({ channel: "whatsapp", ...limit(i) }),
    list_verify_services: ({ verify }, i) => verify.v2.services.list(limit(i)),
  },
  without: Object.fromEntries(["download_media", "download_recording"].map((name) => [name, "the client downloads no files"])),
};

import{i as e}from"./session-CQfw_ddo.js";import{a as t,t as n}from"./client-BTNxnT3G.js";var r=r=>e({queryKey:[`integrations`,r,`manifest`],queryFn:({signal:e})=>t(n.GET(`/v1/integrations/{id}/manifest`,{params:{path:{id:r}},signal:e}))}),i=e=>({headers:{"Content-Type":`application/yaml`},body:{},bodySerializer:()=>e}),a=e=>t(n.POST(`/v1/integrations`,i(e))),o=(e,r,a)=>t(n.PUT(`/v1/integrations/{id}`,{params:{path:{id:e},header:{"If-Match":a}},...i(r)})),s=e=>n.DELETE(`/v1/integrations/{id}`,{params:{path:{id:e}}});async function c(e){await Promise.all([`integrations`,`actions`,`connections`].map(t=>e.invalidateQueries({queryKey:[t]})))}var l=`# What this integration is called. The id begins with x_ and cannot change later.
id: x_acme
name: Acme tickets
category: support
docs: https://docs.acme.example/api
base_url: https://api.acme.example/v1

# How people connect, and the only hosts that receive the credential.
connection:
  hosts: [api.acme.example]
  auth:
    - kind: bearer
      label: Access token
      help: Create one in your profile.
  test: {path: /me} # a request that fails with a wrong credential
  learn: {label: "\${{ test.email }}"} # the name of the account

# What steps can do.
operations:
  create_ticket:
    title: Create a ticket
    input:
      subject: {type: string, title: Subject, required: true}
      urgent: {type: boolean, title: Urgent}
    request:
      method: POST
      path: /tickets
      json:
        subject: \${{ input.subject }}
        urgent: \${{ input.urgent }}
`;export{c as a,r as i,s as n,o,l as r,a as t};
<<<<<<<< HEAD:web/dist/assets/link-D4Qzt6SM.js
import{k as e}from"./index-w_FVFGJx.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
========
import{k as e}from"./index-CrZg-lUW.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
>>>>>>>> 46139fff (web: rebuild with the new members of custom connections):web/dist/assets/link-CTRpiHiN.js

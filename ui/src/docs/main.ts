import { mount } from 'svelte';
import '../styles/base.css';
import Docs from './Docs.svelte';

mount(Docs, { target: document.getElementById('app')! });

/** Entry of the Explore page. */
import { find } from '../ui/dom.js';
import { Explorer } from './explorer.js';

void new Explorer(JSON.parse(find(document, '#boot').textContent ?? '{}')).start();

/** The thread that lays graphs out, as a part of the module: a notebook serves no files of ours. */
import LayoutWorker from '../lib/layout.worker?worker&inline';

export const startLayout = (): Worker => new LayoutWorker();

/** Lay out a graph away from the thread that draws. */
import { lay, type LayoutRequest } from './layout';

onmessage = ({ data }: MessageEvent<LayoutRequest & { turn: number }>) => {
  const places = lay(data);
  postMessage({ turn: data.turn, places }, { transfer: [places.buffer] });
};

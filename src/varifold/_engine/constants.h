/* Constants that several engine modules share as C literals, so that compilers can fold them.
   The .pxd file that declares a constant describes it. */
#ifndef VARIFOLD_CONSTANTS_H
#define VARIFOLD_CONSTANTS_H

/* values: names/reading.pxd */
#define VARIFOLD_LARGEST 1e150

/* sample weights: data/block.pxd */
#define VARIFOLD_LARGEST_WEIGHT 1e9
#define VARIFOLD_SMALLEST_WEIGHT 1e-100

/* robust scaling: robust.pxd */
#define VARIFOLD_LEVEL 0.9
#define VARIFOLD_BOUND 3.0
#define VARIFOLD_SLOWEST_STEP 0.03
#define VARIFOLD_SLOWEST_RISE 1.0273678027634894
#define VARIFOLD_SLOWEST_FALL 0.997004495503373
#define VARIFOLD_NORMAL_QUANTILE 1.645
#define VARIFOLD_NARROW 20.0
#define VARIFOLD_CONSTANT 0.7
#define VARIFOLD_LARGEST_SQUARE 1e300
#define VARIFOLD_SMALLEST_SPREAD 1e-300
#define VARIFOLD_BEYOND 1e300

#endif
